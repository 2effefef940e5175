// @ts-check
// User threads by the one that created them, below how many of the subtree that was opened last live when.

import { counted, grouped, length, printable } from "../format.js";
import { ink } from "../palette.js";
import { element, note } from "./table.js";

const PAGE = 200;
const PIXELS = 700, TALL = 48;

/** Whose subtree is plotted: a key, or all. */
let root = "none", rootLabel = "";

/** @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline @param {AbortSignal} signal */
export async function tree(panel, timeline, signal) {
  if (panel.querySelector("[role=tree]")) { await plot(panel, timeline, signal); return; }
  [root, rootLabel] = ["none", ""];
  const top = element("div", { role: "tree", "aria-label": "User threads by creator" });
  panel.replaceChildren(element("div", { id: "living" }), note("Click a thread to focus it; the arrow opens what it created, and plots that."), top);
  await Promise.all([plot(panel, timeline, signal), branch(top, "none", 0, 1, timeline, signal)]);
  if (!top.hasChildNodes()) top.append(note("This trace has no user threads."));
}

/** How many live threads the subtree has in the window. @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline @param {AbortSignal} [signal] */
async function plot(panel, timeline, signal) {
  const { from, to } = timeline.navigation.window;
  const { threads, most, mean } = await timeline.source.ask("living", { parent: root, from, to, pixels: PIXELS }, signal);
  const holder = panel.querySelector("#living");
  if (!holder) return;
  const text = `${rootLabel ? `${rootLabel} and what it created` : "All"}: ${counted(threads, "user thread")}, in this window at most ${grouped(most)} at once`;
  const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { role: "img", "aria-label": printable(text), width: String(PIXELS), height: String(TALL) }));
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = ink().accent;
  mean.forEach((/** @type {number} */ living, /** @type {number} */ pixel) => {
    const tall = (living / Math.max(most, 1)) * TALL;
    if (tall > 0) context.fillRect(pixel, TALL - Math.max(tall, 1), 1, Math.max(tall, 1));
  });
  canvas.addEventListener("click", (event) => timeline.jump(Math.floor(from + (event.offsetX / PIXELS) * (to - from))));
  holder.replaceChildren(note(text), canvas);
}

/** @param {HTMLElement} place @param {string} parent @param {number} offset @param {number} level @param {import("../timeline.js").Timeline} timeline @param {AbortSignal} [signal] */
async function branch(place, parent, offset, level, timeline, signal) {
  const answer = await timeline.source.ask("tree", { parent, offset, limit: PAGE }, signal);
  for (const row of answer.threads) {
    const open = element("button", { type: "button", "aria-label": "Open" }, row.children ? "▸" : "·");
    const name = element("button", { type: "button" }, printable(`${row.label}  `), length(row.busy, timeline.trace.tick_hz), row.children ? ` · ${row.children} created` : "");
    const children = element("div", { role: "group" });
    const item = element("div", { role: "treeitem", "aria-level": String(level), ...(row.children ? { "aria-expanded": "false" } : {}) }, open, name, children);
    item.style.paddingLeft = level > 1 ? "18px" : "0";
    name.addEventListener("click", () => timeline.focusRow(row));
    if (!row.children) open.setAttribute("disabled", "");
    open.addEventListener("click", () => {
      const isOpen = children.hasChildNodes();
      children.replaceChildren();
      open.textContent = isOpen ? "▸" : "▾";
      item.setAttribute("aria-expanded", String(!isOpen));
      [root, rootLabel] = isOpen ? ["none", ""] : [row.key, row.label];
      const panel = /** @type {HTMLElement | null} */ (place.closest("#panel"));
      if (panel) plot(panel, timeline).catch(timeline.page.fail);
      if (!isOpen) branch(children, row.key, 0, level + 1, timeline).catch(timeline.page.fail);
    });
    place.append(item);
  }
  if (offset + answer.threads.length < answer.total) {
    const more = element("button", { type: "button" }, `${answer.total - offset - answer.threads.length} more`);
    more.addEventListener("click", () => { more.remove(); branch(place, parent, offset + PAGE, level, timeline).catch(timeline.page.fail); });
    place.append(more);
  }
}
