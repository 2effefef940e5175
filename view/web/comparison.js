// @ts-check
// A second super-trace, B, below the first one: aligned by their begins, and shifted by hand.

import * as api from "./api.js";
import { byId } from "./document.js";
import { length, printable } from "./format.js";
import { Minimap } from "./minimap.js";
import { Shifted } from "./navigation.js";
import { element } from "./panels/table.js";
import { Timeline } from "./timeline.js";

export class Comparison {
  /** @param {import("./main.js").Page} page @param {any} trace B @param {number} shift in ticks of A */
  constructor(page, trace, shift) {
    const a = page.timelines[0].trace;
    this.page = page;
    // Their clocks may differ; where the rate of one is not known, ticks are taken as alike.
    const ratio = a.tick_hz && trace.tick_hz ? a.tick_hz / trace.tick_hz : 1;
    this.navigation = new Shifted(page.navigation, ratio, trace.ticks);
    byId("timelines").append(header("A", "-a"), byId("timeline"), header("B", "-b"), rowsOfB());
    byId("overview").after(overviewOfB());
    const timeline = new Timeline(page, trace, new api.Source("b/"), this.navigation, "B");
    page.timelines.push(timeline);
    page.minimaps.push(new Minimap(/** @type {HTMLCanvasElement} */ (byId("minimap-b")), trace, timeline.source, this.navigation));
    byId("overview-name").textContent = "Overview of A";
    page.timelines.forEach(({ letter, trace }) => { byId(`title-${letter.toLowerCase()}`).textContent = printable(trace.name); });
    const button = (/** @type {string} */ label, /** @type {string} */ about, /** @type {() => void} */ run) => {
      const made = element("button", { type: "button", title: about }, label);
      made.addEventListener("click", run);
      return made;
    };
    byId("head-b").append(
      element("span", { id: "shift", role: "status" }),
      button("Earlier", "Shift B to the left (<); Alt + drag on B", () => this.nudge(-0.05)),
      button("Later", "Shift B to the right (>); Alt + drag on B", () => this.nudge(0.05)),
      button("Align begins", "The first events of both at the same place", () => this.setShift(0)),
      button("Align ends", "The last events of both at the same place", () => this.setShift(a.ticks - trace.ticks * ratio)),
      button("Align focus", "The focused instants of both at the same place: click one in each before", () => this.alignFocus()));
    this.setShift(shift);
    this.navigation.base.go(this.navigation.base.extent);
  }

  /** Which of both is active, and how far B is shifted. */
  show() {
    const { active, timelines } = this.page;
    const hz = timelines[0].trace.tick_hz, { shift } = this.navigation;
    for (const timeline of timelines) byId(`head-${timeline.letter.toLowerCase()}`).classList.toggle("active", timeline === active);
    byId("shift").textContent = shift === 0 ? "aligned with A by the begin" : `${length(Math.abs(shift), hz)} ${shift < 0 ? "earlier" : "later"} than aligned by the begin`;
  }

  /** @param {number} shift in ticks of A */
  setShift(shift) {
    this.navigation.shift = Math.round(shift);
    this.page.minimaps.forEach((minimap) => minimap.forget());
    if (this.page.active) this.show();
    this.page.moved();
  }

  /** @param {number} share of the window */
  nudge(share) {
    const { from, to } = this.navigation.base.window;
    this.setShift(this.navigation.shift + (to - from) * share);
  }

  alignFocus() {
    const [a, b] = this.page.timelines.map((timeline) => timeline.focus.tick);
    if (a === null || b === null) { this.page.message("Focus an instant in both first: click one in A and one in B."); return; }
    this.setShift(a - b * this.navigation.ratio);
  }
}

/** @param {string} letter @param {string} suffix */
function header(letter, suffix) {
  return element("div", { class: "timeline-head", id: `head${suffix}` }, element("span", { class: "letter", "aria-hidden": "true" }, letter), element("h2", { id: `title${suffix}` }));
}

function rowsOfB() {
  const scroll = element("div", { id: "scroll-b", class: "scroll", tabindex: "-1" }, element("div", { id: "scroll-size-b", class: "scroll-size" }));
  return element("div", { id: "timeline-b", class: "timeline" },
    element("div", { id: "rows-b", class: "rows", role: "treegrid", "aria-label": "CPUs, LWPs and user threads of B", tabindex: "0" }),
    element("canvas", { id: "canvas-b", class: "canvas", role: "img", "aria-label": "Timeline of B" }), scroll);
}

function overviewOfB() {
  return element("div", { id: "overview-b", class: "overview", role: "img", "aria-label": "Overview of B: events, states and losses over the whole trace" },
    element("div", { class: "gutter" }, "Overview of B"), element("canvas", { id: "minimap-b" }));
}
