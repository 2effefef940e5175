// @ts-check
// The page: what is shown, what is focused, and what happens when either changes.

import * as api from "./api.js";
import { askAside } from "./aside.js";
import { Braid } from "./braid.js";
import { byId } from "./document.js";
import { instant, length, printable } from "./format.js";
import { Head } from "./head.js";
import { HEIGHTS, resize } from "./heights.js";
import { find, keptOf, restore } from "./kept.js";
import * as keys from "./keys.js";
import { Minimap, drawAxis, sized } from "./minimap.js";
import { Navigation, fromFragment, toFragment } from "./navigation.js";
import { onColours } from "./palette.js";
import { Panes } from "./panes.js";
import { Pointer } from "./pointer.js";
import { Rows } from "./rows.js";
import { Tiles, intervalAt } from "./tiles.js";

/** No element can be taller than some 33 million pixels; of more rows a pixel of the scroll bar is more than one of theirs. */
const TALLEST = 30_000_000;

export class Page {
  /** @param {any} trace @param {import("./navigation.js").Kept} kept */
  constructor(trace, kept) {
    this.trace = trace;
    this.scroll = 0;
    this.rowsHeight = 0;
    this.frames = { count: 0, longest_ms: 0 };
    /** Of the frames since they were last asked for. @type {number[]} */
    this.drawn_ms = [];
    this.dirty = false;
    /** Questions aside that are not answered yet. */
    this.asking = 0;
    /** To be scrolled to, once rows have places. @type {number | undefined} */
    this.scrollWanted = undefined;
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
    this.fail = (/** @type {unknown} */ error) => { if (!api.isAbort(error)) this.message(/** @type {Error} */ (error).message); };
    this.canvas = /** @type {HTMLCanvasElement} */ (byId("canvas"));
    this.navigation = new Navigation(trace.ticks, () => this.moved());
    this.rows = new Rows(trace, byId("rows"), () => this.redraw(), this.fail);
    this.rows.resized = (row, height) => this.resizeRows(row, height);
    this.tiles = new Tiles(trace.ticks, () => this.redraw(), this.fail);
    this.braid = new Braid(sized(this.canvas).context, trace);
    this.minimap = new Minimap(/** @type {HTMLCanvasElement} */ (byId("minimap")), trace, this.navigation);
    if (kept.from !== undefined && kept.to !== undefined) this.navigation.go({ from: kept.from, to: kept.to });
    this.navigation.past = [];
    this.rows.filter = { ...this.rows.filter, name: kept.name ?? "", state: kept.state ?? "", sort: kept.sort ?? "number" };
    this.head = new Head(this);
    this.panes = new Panes(this, kept.panel);
    this.panes.show(this.panes.shown);
    restore(this, kept);
    this.pointer = new Pointer(this);
    keys.listen(this);
    onColours(() => { this.tiles.clearImages(); this.braid.recolour(); this.minimap.forget(); this.redraw(); });
    new ResizeObserver(() => this.redraw()).observe(byId("timeline"));
    // The address was edited.
    addEventListener("hashchange", () => { const kept = fromFragment(location.hash); restore(this, kept); this.visit(kept); this.redraw(); });
    this.minimap.load().then(() => this.redraw(), this.fail);
    if (kept.focus) this.visit(kept);
    this.redraw();
    this.refreshPanel();
  }

  /** Shows what a URL asks for. @param {import("./navigation.js").Kept} kept */
  visit(kept) {
    if (kept.from !== undefined && kept.to !== undefined) this.navigation.go({ from: kept.from, to: kept.to });
    if (!kept.focus) return;
    this.focus.tick = kept.tick ?? null;
    this.focusKey(kept.focus);
  }

  // What is shown.

  redraw() {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      const begun = performance.now();
      this.draw();
      const took = performance.now() - begun;
      this.frames.count++;
      this.drawn_ms.push(took);
      this.frames.longest_ms = Math.max(this.frames.longest_ms, took);
    });
  }

  draw() {
    const { width, height, context } = sized(this.canvas);
    if (width < 2 || height < 2) return;
    this.braid.context = context;
    const window = this.navigation.window;
    this.rows.window = window;
    let scene = this.rows.place(this.scroll, this.scroll + height);
    const size = byId("scroll-size");
    this.rowsHeight = scene.height;
    const tall = `${Math.min(scene.height, TALLEST)}px`;
    if (size.style.height !== tall) size.style.height = tall;
    this.rows.render(scene.placed, this.scroll, scene.count, (row) => this.focusRow(row), scene.pinnedHeight);
    const visible = [...new Set(scene.placed.flatMap((place) => (place.row ? [place.row.key] : [])))];
    this.tiles.need(visible, window, Math.max(1, Math.round(width)));
    const isWhole = this.braid.draw({ placed: scene.placed, scroll: this.scroll, pinnedHeight: scene.pinnedHeight, window, width, height,
      tile: (key) => this.tiles.get(key), wide: (key) => this.tiles.wide(key), focus: this.focus });
    if (this.firstPicture === undefined && visible.some((key) => this.tiles.get(key))) {
      this.firstPicture = performance.now();
      performance.mark("first picture");
    }
    drawAxis(/** @type {HTMLCanvasElement} */ (byId("axis")), window, this.trace.tick_hz);
    this.minimap.draw();
    if (!isWhole) this.redraw();
    const hz = this.trace.tick_hz;
    byId("window").textContent = `${instant(window.from, (window.to - window.from) / 1000, hz)} + ${length(window.to - window.from, hz)}`;
    this.visible = visible;
    this.groups = scene.placed.flatMap((place) => (place.group ? [place.group.id] : []));
    if (this.scrollWanted !== undefined) { this.scrollTo(this.scrollWanted); this.scrollWanted = undefined; }
  }

  moved() {
    this.redraw();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settled(), 120);
  }

  /** After a move has ended: what needs questions of its own. */
  settled() {
    history.replaceState(null, "", `#${toFragment(keptOf(this))}`);
    this.aside?.abort();
    this.aside = new AbortController();
    askAside(this, this.aside.signal);
    this.refreshPanel();
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
    this.redraw();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settled(), 30);
  }

  /** @param {string} key */
  async focusKey(key) {
    // At the start: until there are rows to look for it in.
    for (let wait = 0; wait < 40 && this.firstPicture === undefined; wait++) await new Promise((resolve) => setTimeout(resolve, 50));
    const known = this.rows.known().find((row) => row.key === key) ?? this.rows.pinned.find((row) => row.key === key);
    if (known) { this.focusRow(known); this.reveal(key); return; }
    const row = await find(key).catch(this.fail);
    if (!row) return;
    // Rows far away are pinned: they are seen at once.
    if (!this.rows.pinned.some((pinned) => pinned.key === key)) this.rows.togglePin(row);
    this.focusRow(row);
  }

  /** Pixels of the rows for one of the scroll bar. */
  scrollScale() {
    const height = this.canvas.clientHeight;
    return Math.max(1, (this.rowsHeight - height) / Math.max(1, Math.min(this.rowsHeight, TALLEST) - height));
  }

  /** @param {number} top in pixels of the rows */
  scrollTo(top) {
    byId("scroll").scrollTop = top / this.scrollScale();
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
    this.speak(`${next.title}, ${next.open ? "open" : "closed"}`);
    this.redraw();
  }

  /** Opens or closes the focused group. */
  toggleGroup() {
    const group = this.rows.focusedGroup;
    if (!group) return;
    this.rows.toggle(group);
    this.speak(`${group.title}, ${group.open ? "open" : "closed"}`);
  }

  /** Rows of the kind of one are taller, or lower; its own top stays where it is. @param {import("./rows.js").Row} row @param {number} height */
  resizeRows(row, height) {
    const top = this.scroll;
    const before = this.rows.topOf(row.key);
    resize(row.kind, height);
    this.tiles.clearImages();
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
    this.speak(`${kind}s are ${HEIGHTS[kind]} pixels tall`);
  }

  /** The interval that is focused: an exact one of the picture, or one that the server knows. @param {number} [tick] */
  async interval(tick = this.focus.tick ?? this.centre()) {
    const { row } = this.focus;
    if (!row) return null;
    const track = this.tiles.get(row.key)?.tracks[0];
    const exact = track && intervalAt(track, tick);
    if (exact) return exact;
    const answer = await api.ask("at", { key: row.key, tick }).catch(this.fail);
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
    if (tick < 0 || tick > this.trace.ticks) return;
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
    this.showPanel("marks");
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
    byId("message").hidden = true;
    this.moved();
  }

  // Panels.

  get panelName() {
    return this.panes.shown;
  }

  /** @param {string} name */
  showPanel(name) {
    this.panes.show(name);
  }

  refreshPanel() {
    this.panes.refresh();
  }

  /** @param {string} text */
  message(text) {
    byId("message-text").textContent = printable(text);
    byId("message").hidden = false;
  }

  /** @param {string} text */
  speak(text) {
    byId("spoken").textContent = printable(text);
  }

  /** For tests. */
  state() {
    return { ...this.navigation.window, rows: this.visible ?? [], drawn: (this.visible ?? []).filter((key) => this.tiles.get(key)),
      focus: this.focus.key, group: this.rows.focusedGroup?.id ?? null, tick: this.focus.tick, range: this.focus.range, marks: this.focus.marks, ticks: this.focus.ticks.length, chain: this.focus.chain.length,
      asking: this.asking, scroll: this.scroll, heights: { ...HEIGHTS }, open: this.rows.groups.filter((group) => group.open).map((group) => group.id), queues: [...this.focus.queues.keys()],
      disagreements: this.focus.disagreements.length, pinned: this.rows.pinned.map((row) => row.key), panel: this.panelName, frames: this.frames, firstPictureMs: this.firstPicture,
      spans: this.focus.spans.length, life: this.focus.life?.intervals.length ?? 0, wakeups: this.focus.life?.wakeups.length ?? 0,
      spoken: byId("spoken").textContent, message: byId("message").hidden ? "" : byId("message-text").textContent };
  }
}

async function start() {
  const kept = fromFragment(location.hash);
  api.useToken(kept.token);
  // Keeps the token out of the history and of a copied address.
  const { token: _token, ...rest } = kept;
  history.replaceState(null, "", `#${toFragment(rest)}`);
  try {
    const trace = await api.ask("trace");
    if (trace.live) { location.replace("live.html"); return; }
    const page = new Page(trace, rest);
    Object.defineProperty(window, "sigmund", { value: Object.freeze({ state: () => page.state(), measure: () => page.drawn_ms.splice(0) }) });
  } catch (error) {
    byId("message-text").textContent = `${/** @type {Error} */ (error).message}. Open the URL that sigmund has printed.`;
    byId("message").hidden = false;
  }
}

start();
