// @ts-check
// One super-trace on the page: its rows, what of them is drawn, and what is focused. Of two that are compared, each has its own.

import { askAside } from "./aside.js";
import { Braid } from "./braid.js";
import { byId } from "./document.js";
import { printable } from "./format.js";
import { HEIGHTS, resize } from "./heights.js";
import { find } from "./kept.js";
import { sized } from "./minimap.js";
import { Pointer } from "./pointer.js";
import { Rows } from "./rows.js";
import { Tiles, intervalAt } from "./tiles.js";

/** No element can be taller than some 33 million pixels; of more rows a pixel of the scroll bar is more than one of theirs. */
const TALLEST = 30_000_000;

/** @typedef {import("./main.js").Page} Page */

export class Timeline {
  /** @param {Page} page @param {any} trace @param {import("./api.js").Source} source @param {import("./navigation.js").Navigation | import("./navigation.js").Shifted} navigation
   * its window in the ticks of this trace @param {string} letter of two: A or B */
  constructor(page, trace, source, navigation, letter) {
    this.page = page;
    this.trace = trace;
    this.source = source;
    this.navigation = navigation;
    this.letter = letter;
    this.scroll = 0;
    this.rowsHeight = 0;
    /** To be scrolled to, once rows have places. @type {number | undefined} */
    this.scrollWanted = undefined;
    /** Rows that are seen. @type {string[]} */
    this.visible = [];
    /** @type {string[]} */
    this.groups = [];
    /** Keys of an address that this trace does not have. @type {string[]} */
    this.lost = [];
    this.focus = {
      /** @type {import("./rows.js").Row | null} */ row: null,
      /** @type {number | null} */ tick: null,
      /** @type {{from: number, to: number} | null} */ range: null,
      /** @type {any} */ life: null,
      /** @type {any[]} */ spans: [],
      /** @type {Map<string, any[]>} */ interrupts: new Map(),
      /** @type {Map<string, [number, number][]>} */ queues: new Map(),
      /** @type {{from: number, to: number, name: string}[]} */ marks: [],
      /** @type {number[]} */ ticks: [],
      /** @type {{from: number, to: number, keys: string[]}[]} */ chain: [],
      /** @type {any[]} */ disagreements: [],
      get key() { return this.row?.key ?? ""; },
    };
    const suffix = letter === "B" ? "-b" : "";
    const part = (/** @type {string} */ name) => byId(`${name}${suffix}`);
    this.element = part("timeline");
    this.canvas = /** @type {HTMLCanvasElement} */ (part("canvas"));
    this.scrollBar = part("scroll");
    this.scrollSize = part("scroll-size");
    this.names = part("rows");
    this.rows = new Rows(trace, source, this.names, () => this.redraw(), page.fail, suffix);
    this.rows.resized = (row, height) => this.resizeRows(row, height);
    this.tiles = new Tiles(trace.ticks, source, () => this.redraw(), page.fail);
    this.braid = new Braid(sized(this.canvas).context, trace);
    this.pointer = new Pointer(this);
    this.names.addEventListener("focus", () => page.activate(this));
    new ResizeObserver(() => this.redraw()).observe(this.element);
  }

  /** What it is called beside another one: "A: name". */
  get title() {
    return this.letter === "" ? printable(this.trace.name) : `${this.letter}: ${printable(this.trace.name)}`;
  }

  redraw() {
    this.page.redraw();
  }

  moved() {
    this.page.moved();
  }

  draw() {
    const { width, height, context } = sized(this.canvas);
    if (width < 2 || height < 2) return true;
    this.braid.context = context;
    const window = this.navigation.window;
    this.rows.window = window;
    const scene = this.rows.place(this.scroll, this.scroll + height);
    this.rowsHeight = scene.height;
    const tall = `${Math.min(scene.height, TALLEST)}px`;
    if (this.scrollSize.style.height !== tall) this.scrollSize.style.height = tall;
    this.rows.render(scene.placed, this.scroll, scene.count, (row) => this.focusRow(row), scene.pinnedHeight);
    this.visible = [...new Set(scene.placed.flatMap((place) => (place.row ? [place.row.key] : [])))];
    this.groups = scene.placed.flatMap((place) => (place.group ? [place.group.id] : []));
    this.tiles.need(this.visible, window, Math.max(1, Math.round(width)));
    const isWhole = this.braid.draw({ placed: scene.placed, scroll: this.scroll, pinnedHeight: scene.pinnedHeight, window, width, height,
      tile: (key) => this.tiles.get(key), wide: (key) => this.tiles.wide(key), focus: this.focus });
    if (this.scrollWanted !== undefined) { this.scrollTo(this.scrollWanted); this.scrollWanted = undefined; }
    return isWhole;
  }

  /** Rows that are seen and drawn. */
  get drawn() {
    return this.visible.filter((key) => this.tiles.get(key));
  }

  recolour() {
    this.tiles.clearImages();
    this.braid.recolour();
  }

  /** What needs questions of its own, after a move has ended. */
  settled() {
    this.aside?.abort();
    this.aside = new AbortController();
    askAside(this, this.aside.signal);
  }

  // What is focused.

  /** @param {import("./rows.js").Row} row @param {number | null} [tick] */
  focusRow(row, tick = this.focus.tick) {
    const isOther = row.key !== this.focus.key;
    Object.assign(this.focus, { row, tick });
    this.rows.focused = row;
    this.rows.focusedGroup = null;
    if (isOther) { this.focus.life = null; this.focus.spans = []; this.rows.spans = 0; }
    if (this.rows.filter.with && isOther) this.rows.setFilter({ with: row.key });
    this.page.activate(this);
    this.redraw();
    this.page.settleSoon(30);
  }

  /** @param {string} key */
  async focusKey(key) {
    // At the start: until there are rows to look for it in.
    for (let wait = 0; wait < 200 && this.page.firstPicture === undefined; wait++) await new Promise((resolve) => setTimeout(resolve, 50));
    const known = this.rows.known().find((row) => row.key === key) ?? this.rows.pinned.find((row) => row.key === key);
    if (known) { this.focusRow(known); this.reveal(key); return; }
    const row = await find(this.source, key).catch((error) => { this.page.fail(error); return null; });
    if (row === undefined) this.missing([key]);
    if (!row) return;
    // Rows far away are pinned: they are seen at once.
    if (!this.rows.pinned.some((pinned) => pinned.key === key)) this.rows.togglePin(row);
    this.focusRow(row);
  }

  /** Shows which of the requested rows are not in this trace. @param {string[]} keys */
  missing(keys) {
    this.lost = [...new Set([...this.lost, ...keys])];
    this.page.message(`${this.title} has no ${this.lost.join(", no ")}`);
  }

  /** Pixels of the rows for one of the scroll bar. */
  scrollScale() {
    const height = this.canvas.clientHeight;
    return Math.max(1, (this.rowsHeight - height) / Math.max(1, Math.min(this.rowsHeight, TALLEST) - height));
  }

  /** @param {number} top in pixels of the rows */
  scrollTo(top) {
    this.scrollBar.scrollTop = top / this.scrollScale();
  }

  /** Scrolls a row into view. @param {string} key */
  reveal(key) {
    const top = this.rows.topOf(key);
    const height = this.canvas.clientHeight;
    if (top === null || (top >= this.scroll + 10 && top <= this.scroll + height - 60)) return;
    this.scrollTo(Math.max(0, top - height / 3));
  }

  /** Through rows and the heads of groups. @param {number} step */
  moveFocus(step) {
    const entries = this.rows.order();
    const at = entries.findIndex((entry) => (this.rows.focusedGroup ? entry === this.rows.focusedGroup : "key" in entry && entry.key === this.focus.key));
    const next = entries[Math.min(Math.max(at < 0 ? 0 : at + step, 0), entries.length - 1)];
    if (!next) return;
    if ("key" in next) { this.focusRow(next); this.reveal(next.key); return; }
    this.rows.focusedGroup = next;
    this.reveal(next.id);
    this.page.speak(`${next.title}, ${next.open ? "open" : "closed"}`);
    this.redraw();
  }

  /** Opens or closes the focused group. */
  toggleGroup() {
    const group = this.rows.focusedGroup;
    if (!group) return;
    this.rows.toggle(group);
    this.page.speak(`${group.title}, ${group.open ? "open" : "closed"}`);
  }

  /** Rows of the kind of one are taller, or lower; its own top stays where it is. @param {import("./rows.js").Row} row @param {number} height */
  resizeRows(row, height) {
    const top = this.scroll;
    const before = this.rows.topOf(row.key);
    resize(row.kind, height);
    this.page.timelines.forEach((timeline) => timeline.tiles.clearImages());
    const after = this.rows.topOf(row.key);
    if (before !== null && after !== null) { this.draw(); this.scrollTo(top + after - before); }
    this.moved();
  }

  /** Of the kind of the focused row. @param {number} factor */
  growRows(factor) {
    const { row } = this.focus;
    if (!row) return;
    const { kind } = row;
    this.resizeRows(row, HEIGHTS[kind] + Math.sign(factor) * Math.max(2, Math.abs(HEIGHTS[kind] * factor)));
    this.page.speak(`${kind}s are ${HEIGHTS[kind]} pixels tall`);
  }

  /** The interval that is focused: an exact one of the picture, or one that the server knows. @param {number} [tick] */
  async interval(tick = this.focus.tick ?? this.centre()) {
    const { row } = this.focus;
    if (!row) return null;
    const track = this.tiles.get(row.key)?.tracks[0];
    const exact = track && intervalAt(track, tick);
    if (exact) return exact;
    const answer = await this.source.ask("at", { key: row.key, tick }).catch(this.page.fail);
    return answer?.intervals[0] ?? null;
  }

  async zoomToFocus() {
    const found = this.focus.range ?? await this.interval();
    if (found) this.navigation.show(found.from, found.to);
  }

  /** @param {number} direction */
  async neighbour(direction) {
    const found = await this.interval();
    if (!found) return;
    const tick = direction < 0 ? found.from - 1 : found.to;
    if (tick < 0 || tick >= this.trace.ticks) return;
    this.focus.tick = tick;
    const next = await this.interval(tick);
    this.jump(next ? Math.floor((next.from + next.to) / 2) : tick);
  }

  /** Shows an instant, at the same zoom. @param {number} tick */
  jump(tick) {
    this.focus.tick = tick;
    const { from, to } = this.navigation.window;
    if (tick < from || tick > to) this.navigation.go({ from: tick - (to - from) / 2, to: tick + (to - from) / 2 });
    this.moved();
  }

  centre() {
    const { from, to } = this.navigation.window;
    const { tick } = this.focus;
    return tick !== null && tick >= from && tick <= to ? tick : (from + to) / 2;
  }

  pin() {
    if (this.focus.row) this.rows.togglePin(this.focus.row);
  }

  async addMark() {
    const found = this.focus.range ?? await this.interval();
    if (!found) return;
    this.focus.marks.push({ from: found.from, to: found.to, name: this.focus.row ? printable(`${this.focus.row.kind} ${this.focus.row.label}`) : "selection" });
    this.page.showPanel("marks");
    this.redraw();
  }

  /** Lines on the timeline. @param {number[]} ticks */
  mark(ticks) {
    this.focus.ticks = ticks;
    this.redraw();
  }

  /** The links of a critical path. @param {{from: number, to: number, keys: string[]}[]} chain */
  chain(chain) {
    this.focus.chain = chain;
    this.redraw();
  }

  clear() {
    Object.assign(this.focus, { row: null, tick: null, range: null, life: null, spans: [], marks: [], ticks: [], chain: [] });
    this.rows.focused = null;
    this.rows.focusedGroup = null;
    this.rows.spans = 0;
    this.page.unmessage();
    this.moved();
  }
}
