// @ts-check
// The panels below the rows, and the borders that are moved: by the mouse, or by arrows when they have the focus.

import * as api from "./api.js";
import { byId } from "./document.js";
import { resizeGutter } from "./kept.js";
import { compare } from "./panels/compare.js";
import { details } from "./panels/details.js";
import { latency } from "./panels/latency.js";
import { listing } from "./panels/listing.js";
import { marks } from "./panels/marks.js";
import { measures } from "./panels/measures.js";
import { selection } from "./panels/selection.js";
import { sql } from "./panels/sql.js";
import { element, note } from "./panels/table.js";
import { tree } from "./panels/tree.js";

/** @type {[string, string, (panel: HTMLElement, timeline: import("./timeline.js").Timeline, signal: AbortSignal) => Promise<void>][]} */
const PANELS = [
  ["details", "Details", details], ["selection", "Statistics", selection], ["listing", "Events", listing],
  ["latency", "Latency", latency], ["measures", "Measures", measures], ["sql", "SQL", sql], ["tree", "Creators", tree],
  ["marks", "Marks", marks],
];
/** Only where there are two super-traces. @type {typeof PANELS[0]} */
const COMPARE = ["compare", "Compare A and B", compare];

export class Panes {
  /** @param {import("./main.js").Page} page @param {string | undefined} shown */
  constructor(page, shown) {
    this.page = page;
    this.panels = page.comparison ? [COMPARE, ...PANELS] : PANELS;
    this.shown = this.panels.some(([name]) => name === shown) ? /** @type {string} */ (shown) : this.panels[0][0];
    byId("tabs").replaceChildren(...this.panels.map(([name, label]) => {
      const tab = element("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel" }, label);
      tab.addEventListener("click", () => this.show(name));
      return tab;
    }));
    border(byId("splitter"), { ArrowUp: 20, ArrowDown: -20 }, (event) => innerHeight - event.clientY, () => byId("panels").clientHeight, (height) => this.resize(height), () => page.moved());
    border(byId("gutter-splitter"), { ArrowLeft: -20, ArrowRight: 20 }, (event) => event.clientX, () => byId("rows").offsetWidth, resizeGutter, () => page.moved());
  }

  /** @param {number} height */
  resize(height) {
    const allowed = Math.min(Math.max(height, 60), innerHeight - 200);
    document.documentElement.style.setProperty("--panels", `${allowed}px`);
    byId("splitter").setAttribute("aria-valuenow", String(Math.round(allowed)));
  }

  /** @param {string} name */
  show(name) {
    this.shown = name;
    for (const [other] of this.panels) byId(`tab-${other}`).setAttribute("aria-selected", String(other === name));
    byId("panel").setAttribute("aria-labelledby", `tab-${name}`);
    byId("panel").replaceChildren();
    this.refresh();
  }

  refresh() {
    const panel = this.panels.find(([name]) => name === this.shown);
    if (!panel) return;
    this.work?.abort();
    this.work = new AbortController();
    panel[2](byId("panel"), this.page.active, this.work.signal).catch((error) => {
      if (!api.isAbort(error)) byId("panel").replaceChildren(note(error.message));
    });
  }
}

/** A border that is dragged, or moved by keys. @param {HTMLElement} border @param {Record<string, number>} keys @param {(event: PointerEvent) => number} at
 * @param {() => number} size @param {(size: number) => void} resize @param {() => void} ended */
export function border(border, keys, at, size, resize, ended) {
  border.addEventListener("pointerdown", (event) => border.setPointerCapture(event.pointerId));
  border.addEventListener("pointermove", (event) => { if (border.hasPointerCapture(event.pointerId)) resize(at(event)); });
  border.addEventListener("pointerup", ended);
  border.addEventListener("keydown", (event) => {
    const step = keys[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    resize(size() + step);
    ended();
  });
}
