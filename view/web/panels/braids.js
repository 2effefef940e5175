// @ts-check
// The median instance of a span above the slowest one: the rows that their time was spent on, and the path along them. Both are
// drawn to the same scale, from their begins.

import { Braid } from "../braid.js";
import { length, printable } from "../format.js";
import { HEIGHTS } from "../heights.js";
import { sized } from "../minimap.js";
import { decode } from "../tiles.js";
import { element, note } from "./table.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** A piece of a walk, with the rows that it is on. @typedef {{from: number, to: number, category: string, keys: string[]}} Piece */

/** Rows of one braid. */
const MOST_ROWS = 12;
const NAMES = 150, WIDE = 760;

/** @param {HTMLElement} place @param {Timeline} timeline @param {Record<string, any>} question the one that the bands are the answer to @param {AbortSignal} signal */
export async function braids(place, timeline, question, signal) {
  const answer = await timeline.source.ask("braids", question, signal);
  const both = ["median", "slowest"].map((name) => ({ name, pieces: piecesOf(answer, name) })).filter(({ pieces }) => pieces.length > 0);
  const longest = Math.max(...both.map(({ pieces }) => pieces[pieces.length - 1].to - pieces[0].from));
  const parts = [];
  for (const { name, pieces } of both) parts.push(await drawn(timeline, name, pieces, longest, signal));
  place.replaceChildren(...parts.map(({ figure }) => figure), ...(both.length > 0 ? [note("Both to the same scale, from their begins. A click shows the instance on the timeline.")] : []));
  // Now they have a size.
  parts.forEach(({ paint }) => paint());
}

/** @param {any} answer @param {string} name @returns {Piece[]} */
function piecesOf(answer, name) {
  const place = (/** @type {string} */ name) => answer.columns.findIndex((/** @type {any} */ column) => column.name === name);
  const [at, took, category] = ["ts_tick", "dur_tick", "category"].map(place);
  const kinds = ["thread", "lwp", "cpu"];
  return answer.rows.filter((/** @type {any[]} */ row) => row[place("instance")] === name).map((/** @type {any[]} */ row) => ({
    from: Number(row[at]), to: Number(row[at]) + Number(row[took]), category: row[category],
    keys: kinds.filter((kind) => row[place(kind)] !== null).map((kind) => `${kind}:${row[place(kind)]}`),
  }));
}

/** One instance. @param {Timeline} timeline @param {string} name @param {Piece[]} pieces @param {number} longest ticks that the width is of @param {AbortSignal} signal */
async function drawn(timeline, name, pieces, longest, signal) {
  const from = pieces[0].from, to = pieces[pieces.length - 1].to;
  const rows = rowsOf(pieces);
  const window = { from, to: from + longest };
  const tiles = decode(await timeline.source.tiles({ ...window, pixels: WIDE, keys: rows }, signal));
  const hz = timeline.trace.tick_hz;
  const title = `${name === "median" ? "The median instance" : "The slowest instance"}: ${length(to - from, hz)}`;
  const tall = rows.reduce((sum, key) => sum + HEIGHTS[key.split(":")[0]], 0);
  const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { role: "img", "aria-label": printable(`${title}: ${words(pieces, hz)}`) }));
  canvas.style.width = `${WIDE}px`;
  canvas.style.height = `${tall}px`;
  const names = element("div", { class: "braid-names" }, ...rows.map((key) => {
    const line = element("div", {}, printable(key.replace("cpu:", "CPU ").replace("lwp:", "LWP ").replace(":", " ")));
    line.style.height = `${HEIGHTS[key.split(":")[0]]}px`;
    return line;
  }));
  names.style.width = `${NAMES}px`;
  canvas.addEventListener("click", () => {
    timeline.focus.range = { from, to };
    timeline.chain(pieces);
    timeline.navigation.show(from, to);
  });
  const figure = element("figure", { class: "braid", id: `braid-${name}` }, element("figcaption", {}, title, " · ", words(pieces, hz)), element("div", { class: "braid-rows" }, names, canvas));
  const paint = () => {
    let top = 0;
    const placed = rows.map((key, index) => {
      const kind = key.split(":")[0], height = HEIGHTS[kind];
      const row = { key, kind, label: key, name: null, pid: null, from: 0, to: null, busy: 0 };
      top += height;
      return { top: top - height, height, level: 1, index, row };
    });
    const { context, width, height } = sized(canvas);
    const focus = { key: "", chain: pieces, marks: [], ticks: [], tick: null, range: null, life: null, spans: [], interrupts: new Map(), queues: new Map(), disagreements: [] };
    const braid = new Braid(context, timeline.trace);
    const isWhole = braid.draw({ placed, scroll: 0, pinnedHeight: 0, window, width, height, tile: (key) => tiles.get(key), wide: () => undefined, focus });
    // What lies after its end is no part of it.
    const end = ((to - from) / longest) * width;
    context.fillStyle = braid.ink.back;
    context.globalAlpha = 0.75;
    context.fillRect(end, 0, width - end, height);
    context.globalAlpha = 1;
    if (!isWhole) requestAnimationFrame(paint);
  };
  return { figure, paint };
}

/** The rows of a walk: user threads first, in the order in which they come. @param {Piece[]} pieces */
function rowsOf(pieces) {
  const keys = [...new Set(pieces.flatMap((piece) => piece.keys))];
  return ["thread", "lwp", "cpu"].flatMap((kind) => keys.filter((key) => key.startsWith(`${kind}:`)).slice(0, MOST_ROWS / 3));
}

/** The sum of each category. @param {Piece[]} pieces @param {number | null} hz */
function words(pieces, hz) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const piece of pieces) sums.set(piece.category, (sums.get(piece.category) ?? 0) + piece.to - piece.from);
  return [...sums].sort((a, b) => b[1] - a[1]).map(([category, ticks]) => `${category} ${length(ticks, hz)}`).join(", ");
}
