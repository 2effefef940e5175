// @ts-check
// A distribution of lengths: bars of equal ratio, and the cumulative share over them, both by the same logarithmic axis.

import { length, percent } from "../format.js";
import { ink } from "../palette.js";
import { element } from "./table.js";

/** @typedef {import("./latency.js").Example} Example */

const BARS = 32;
/** Pixels of a bar with its gap, and of both pictures. */
const STEP = 19, TALL = 86;

/** Where the edges of bars are, and which examples each has. The last bar holds the longest. @param {number[]} sorted lengths, the shortest first
 * @param {number} bars @returns {{edge: (share: number) => number, groups: {begin: number, end: number}[]}} */
export function grouped(sorted, bars) {
  const low = Math.max(sorted[0], 1), high = Math.max(sorted[sorted.length - 1], low + 1);
  const edge = (/** @type {number} */ share) => low * (high / low) ** share;
  let begin = 0;
  const groups = Array.from({ length: bars }, (_, bar) => {
    const limit = bar === bars - 1 ? Infinity : edge((bar + 1) / bars);
    let end = begin;
    while (end < sorted.length && sorted[end] < limit) end++;
    const group = { begin, end };
    begin = end;
    return group;
  });
  return { edge, groups };
}

/** By nearest rank. @param {number[]} sorted of which the shortest are left out @param {number} count of all @param {number} share @returns {number | null} null if it is one of those that are left out */
export function quantile(sorted, count, share) {
  const rank = Math.max(Math.ceil(count * share), 1) - 1 - (count - sorted.length);
  return sorted[rank] ?? null;
}

/** @param {Example[]} examples the slowest ones @param {number} count of all, with shorter ones @param {import("../timeline.js").Timeline} timeline */
export function distribution(examples, count, timeline) {
  const hz = timeline.trace.tick_hz;
  const sorted = [...examples].sort((a, b) => a.took - b.took);
  const lengths = sorted.map(({ took }) => took);
  const left = count - sorted.length;
  const { edge, groups } = grouped(lengths, BARS);
  const most = Math.max(...groups.map(({ begin, end }) => end - begin));
  const show = (/** @type {Example} */ worst) => {
    timeline.focus.range = { from: worst.at, to: worst.at + worst.took };
    timeline.focus.tick = worst.at;
    timeline.navigation.show(worst.at, worst.at + worst.took);
    if (worst.key) timeline.focusKey(worst.key);
  };
  const holder = element("div", { class: "bars", role: "list", "aria-label": "Distribution of the latency" });
  for (const { begin, end } of groups) {
    const item = element("span", { role: "listitem" });
    item.style.width = `${STEP - 1}px`;
    holder.append(item);
    if (begin === end) { item.setAttribute("aria-label", "none"); continue; }
    const worst = sorted[end - 1];
    const label = `${end - begin} of ${length(sorted[begin].took, hz)} to ${length(worst.took, hz)}; ${percent((left + end) / count)} are at most that`;
    const bar = element("button", { type: "button", title: label, "aria-label": label });
    bar.style.height = `${Math.max(4, ((end - begin) / most) * TALL)}px`;
    bar.addEventListener("click", () => show(worst));
    item.append(bar);
  }
  const ranks = [0.5, 0.9, 0.99, 1].map((share) => [share, quantile(lengths, count, share)]);
  const words = ranks.map(([share, value]) => `${share === 1 ? "longest" : `p${Number(share) * 100}`} ${value === null ? `less than ${length(lengths[0], hz)}` : length(value, hz)}`).join(", ");
  const curve = cumulative(lengths, count, edge, `Cumulative share: ${words}`);
  curve.addEventListener("click", (event) => {
    const share = event.offsetX / (BARS * STEP);
    show(sorted[Math.max(lengths.findLastIndex((took) => took <= edge(share)), 0)]);
  });
  return element("div", { class: "distribution" }, holder, curve, element("p", { class: "note", id: "quantiles" }, `${words}. Below: the share of all that took at most so long; a click leads to that one.`));
}

/** The share of all that are at most as long. @param {number[]} sorted @param {number} count @param {(share: number) => number} edge @param {string} label */
function cumulative(sorted, count, edge, label) {
  const width = BARS * STEP;
  const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { id: "cdf", role: "img", "aria-label": label, width: String(width), height: String(TALL) }));
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const colours = ink();
  context.strokeStyle = colours.line;
  for (const share of [0.5, 0.9, 0.99]) {
    const y = Math.round((1 - share) * (TALL - 2)) + 0.5;
    context.beginPath(); context.moveTo(0, y); context.lineTo(width, y); context.stroke();
  }
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.beginPath();
  let below = 0;
  for (let x = 0; x <= width; x++) {
    const limit = x === width ? Infinity : edge(x / width);
    while (below < sorted.length && sorted[below] <= limit) below++;
    const y = 1 + (1 - (count - sorted.length + below) / count) * (TALL - 2);
    if (x === 0) context.moveTo(x, y); else context.lineTo(x, y);
  }
  context.stroke();
  return canvas;
}
