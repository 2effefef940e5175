// @ts-check
// The events of the window, from the focused instant on, as far as one scrolls in either direction.

import { instant } from "../format.js";
import { EventPages } from "./event_pages.js";
import { element, note, table } from "./table.js";

const PAGE = 200;
const MOST = 800;
/** Pixels to an end of the rows at which more are loaded. */
const NEAR = 300;

let name = "";
/** What is shown, so that it is kept while only the focus moves in it. @type {{question: string, pages: EventPages} | null} */
let shown = null;

/** @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline @param {AbortSignal} signal */
export async function listing(panel, timeline, signal) {
  const window = timeline.focus.range ?? timeline.navigation.window;
  const key = timeline.focus.row?.key;
  const question = { from: window.from, to: window.to, key, name };
  const text = JSON.stringify(question);
  const { tick } = timeline.focus;
  const isListed = () => {
    const rows = shown?.pages.rows ?? [];
    return tick === null || (rows.length > 0 && tick >= rows[0].at && tick <= rows[rows.length - 1].at);
  };
  if (shown?.question === text && panel.querySelector("table") && isListed()) { mark(panel, shown.pages.rows, tick); return; }
  // Pages that come later are of this listing, not of this call.
  const pages = new EventPages((where) => timeline.source.ask("events", { ...question, ...where, limit: PAGE }), MOST);
  const start = tick !== null && tick >= window.from && tick < window.to ? tick : window.from;
  await pages.start(start);
  signal.throwIfAborted();
  const own = { question: text, pages };
  shown = own;
  const input = /** @type {HTMLInputElement} */ (element("input", { type: "search", "aria-label": "Events whose name contains", placeholder: "event, or ^name", value: name }));
  input.addEventListener("change", () => { name = input.value; timeline.page.refreshPanel(); });
  const holder = element("div", { id: "events" });
  panel.replaceChildren(
    element("div", { class: "tools" }, input, note(`Events ${key ? `of ${key}` : "of all"} in the ${timeline.focus.range ? "selected interval" : "window"}; more are loaded at both ends`)),
    holder);
  draw(holder, pages, timeline);
  mark(panel, pages.rows, tick);
  scrollTo(panel, pages.rows.findIndex((row) => row.at >= start));
  const load = async () => {
    if (shown !== own || !holder.isConnected) { panel.removeEventListener("scroll", failing); return; }
    const { scrollTop, clientHeight, scrollHeight } = panel;
    const isUp = scrollTop < NEAR && pages.moreBefore;
    if (!isUp && !(scrollHeight - scrollTop - clientHeight < NEAR && pages.moreAfter)) return;
    const anchor = pages.rows.at(isUp ? 0 : -1);
    const before = lines(panel).at(isUp ? 0 : -1)?.getBoundingClientRect().top ?? 0;
    if (!await (isUp ? pages.earlier() : pages.later()) || !holder.isConnected || shown !== own) return;
    draw(holder, pages, timeline);
    mark(panel, pages.rows, timeline.focus.tick);
    // The row at the end stays where it was; what it shows did not change.
    const after = lines(panel)[pages.rows.indexOf(anchor)]?.getBoundingClientRect().top ?? before;
    panel.scrollTop += after - before;
  };
  const failing = () => load().catch(timeline.page.fail);
  panel.addEventListener("scroll", failing, { passive: true });
  failing();
}

/** @param {HTMLElement} panel @returns {HTMLElement[]} */
const lines = (panel) => [...panel.querySelectorAll("tbody tr")].map((line) => /** @type {HTMLElement} */ (line));

/** @param {HTMLElement} holder @param {EventPages} pages @param {import("../timeline.js").Timeline} timeline */
function draw(holder, pages, timeline) {
  const { rows } = pages;
  const hz = timeline.trace.tick_hz;
  holder.replaceChildren(
    table("Events", [{ name: "at" }, { name: "level" }, { name: "event" }, { name: "CPU" }, { name: "LWP" }, { name: "thread" }, { name: "parameters" }],
      rows.map((row) => [
        { text: instant(row.at, 1, hz) }, { text: row.level }, { text: row.name },
        { text: row.cpu ?? "" }, { text: row.lwp ?? "" }, { text: row.thread ?? "" }, { text: row.text },
      ]), (place) => timeline.jump(rows[place].at)));
}

/** The row of the focused instant. @param {HTMLElement} panel @param {any[]} rows @param {number | null} tick */
function mark(panel, rows, tick) {
  lines(panel).forEach((line, place) => line.classList.toggle("now", rows[place]?.at === tick));
}

/** @param {HTMLElement} panel @param {number} row */
function scrollTo(panel, row) {
  const line = lines(panel)[row];
  if (line) panel.scrollTop += line.getBoundingClientRect().top - panel.getBoundingClientRect().top - 40;
}
