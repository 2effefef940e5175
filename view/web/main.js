// @ts-check
// The page: one timeline, or two that are compared, and what happens when what is shown or focused changes.

import * as api from "./api.js";
import { Comparison } from "./comparison.js";
import { byId } from "./document.js";
import { instant, length, printable } from "./format.js";
import { Head } from "./head.js";
import { HEIGHTS } from "./heights.js";
import { keptOf, restore } from "./kept.js";
import * as keys from "./keys.js";
import { Minimap, drawAxis } from "./minimap.js";
import { Navigation, fromFragment, toFragment } from "./navigation.js";
import { onColours } from "./palette.js";
import { Panes } from "./panes.js";
import { Timeline } from "./timeline.js";

export class Page {
  /** @param {any} trace @param {any} other the trace that it is compared with, or null @param {import("./navigation.js").Kept} kept */
  constructor(trace, other, kept) {
    this.frames = { count: 0, longest_ms: 0 };
    /** Of the frames since they were last asked for. @type {number[]} */
    this.drawn_ms = [];
    this.dirty = false;
    /** Questions aside that are not answered yet. */
    this.asking = 0;
    this.fail = (/** @type {unknown} */ error) => { if (!api.isAbort(error)) this.message(/** @type {Error} */ (error).message); };
    this.navigation = new Navigation(trace.ticks, () => this.moved());
    const first = new Timeline(this, trace, new api.Source(), this.navigation, other ? "A" : "");
    this.timelines = [first];
    this.minimaps = [new Minimap(/** @type {HTMLCanvasElement} */ (byId("minimap")), trace, first.source, this.navigation)];
    /** What is compared; null if nothing is. */
    this.comparison = other ? new Comparison(this, other, kept.shift ?? 0) : null;
    /** The one that keys and panels are about. */
    this.active = first;
    if (kept.from !== undefined && kept.to !== undefined) this.navigation.go({ from: kept.from, to: kept.to });
    this.navigation.past = [];
    for (const { rows } of this.timelines) rows.filter = { ...rows.filter, name: kept.name ?? "", state: kept.state ?? "", sort: kept.sort ?? "number" };
    this.head = new Head(this);
    this.panes = new Panes(this, kept.panel);
    if (kept.of === "B" && this.timelines[1]) this.activate(this.timelines[1]);
    this.panes.show(this.panes.shown);
    restore(this, kept);
    keys.listen(this);
    onColours(() => { this.timelines.forEach((timeline) => timeline.recolour()); this.minimaps.forEach((minimap) => minimap.forget()); this.redraw(); this.refreshPanel(); });
    // The address was edited.
    addEventListener("hashchange", () => { const kept = fromFragment(location.hash); restore(this, kept); this.visit(kept); this.redraw(); });
    for (const minimap of this.minimaps) minimap.load().then(() => this.redraw(), this.fail);
    if (kept.focus) this.visit(kept);
    this.redraw();
    this.refreshPanel();
  }

  /** Shows what a URL asks for. @param {import("./navigation.js").Kept} kept */
  visit(kept) {
    if (kept.from !== undefined && kept.to !== undefined) this.navigation.go({ from: kept.from, to: kept.to });
    if (!kept.focus) return;
    const timeline = kept.of === "B" ? this.timelines[1] ?? this.active : this.timelines[0];
    timeline.focus.tick = kept.tick ?? null;
    this.asking++;
    timeline.focusKey(kept.focus).finally(() => { this.asking--; });
  }

  /** Keys and panels are about this one from now on. @param {Timeline} timeline */
  activate(timeline) {
    if (timeline === this.active) return;
    this.active = timeline;
    this.comparison?.show();
    this.panes.show(this.panes.shown);
    this.redraw();
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
    const isWhole = this.timelines.map((timeline) => timeline.draw()).every((isWhole) => isWhole);
    if (this.firstPicture === undefined && this.timelines.every(({ drawn }) => drawn.length > 0)) {
      this.firstPicture = performance.now();
      performance.mark("first picture");
    }
    const window = this.navigation.window;
    const hz = this.timelines[0].trace.tick_hz;
    drawAxis(/** @type {HTMLCanvasElement} */ (byId("axis")), window, hz);
    this.minimaps.forEach((minimap) => minimap.draw());
    if (!isWhole) this.redraw();
    byId("window").textContent = `${instant(window.from, (window.to - window.from) / 1000, hz)} + ${length(window.to - window.from, hz)}`;
  }

  moved() {
    this.redraw();
    this.settleSoon(120);
  }

  /** @param {number} after in milliseconds */
  settleSoon(after) {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settled(), after);
  }

  /** After a move has ended: what needs questions of its own. */
  settled() {
    history.replaceState(null, "", `#${toFragment(keptOf(this))}`);
    this.timelines.forEach((timeline) => timeline.settled());
    this.refreshPanel();
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

  unmessage() {
    byId("message").hidden = true;
  }

  /** @param {string} text */
  speak(text) {
    byId("spoken").textContent = printable(text);
  }

  /** For tests: of the one that is active, and what both have in common. */
  state() {
    const { focus, rows, visible, drawn, scroll, letter } = this.active;
    const all = this.timelines.map((timeline) => ({ letter: timeline.letter, ...timeline.navigation.window, rows: timeline.visible, drawn: timeline.drawn }));
    return { ...this.navigation.window, rows: visible, drawn, letter, all, shift: this.comparison?.navigation.shift ?? 0,
      focus: focus.key, group: rows.focusedGroup?.id ?? null, tick: focus.tick, range: focus.range, marks: focus.marks, ticks: focus.ticks.length, chain: focus.chain.length,
      asking: this.asking, scroll, heights: { ...HEIGHTS }, open: rows.groups.filter((group) => group.open).map((group) => group.id), queues: [...focus.queues.keys()],
      disagreements: focus.disagreements.length, pinned: rows.pinned.map((row) => row.key), panel: this.panelName, frames: this.frames, firstPictureMs: this.firstPicture,
      spans: focus.spans.length, life: focus.life?.intervals.length ?? 0, wakeups: focus.life?.wakeups.length ?? 0,
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
    const other = trace.is_compared ? await api.ask("b/trace") : null;
    const page = new Page(trace, other, rest);
    Object.defineProperty(window, "sigmund", { value: Object.freeze({ state: () => page.state(), measure: () => page.drawn_ms.splice(0) }) });
  } catch (error) {
    byId("message-text").textContent = `${/** @type {Error} */ (error).message}. Open the URL that sigmund has printed.`;
    byId("message").hidden = false;
  }
}

start();
