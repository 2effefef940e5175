// @ts-check
// SQL over the trace. Rows with a column ts_tick become marks on the timeline.

import { isAbort } from "../api.js";
import { counted } from "../format.js";
import { sqlCommand } from "../shell.js";
import { completion } from "./completion.js";
import { copyButton, element, note, table } from "./table.js";

let text = "SELECT * FROM active ORDER BY dur_tick DESC LIMIT 20";

/** What Tab completes, by source. @type {WeakMap<import("../api.js").Source, Promise<import("./completion.js").Names>>} */
const known = new WeakMap();

/** Asked for once, and not with the panel's signal: a panel that is drawn again would abort it for good. @param {import("../api.js").Source} source */
function names(source) {
  const asked = known.get(source) ?? source.ask("sql/names");
  known.set(source, asked);
  asked.catch(() => known.delete(source));
  return asked;
}

/** @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline */
export async function sql(panel, timeline) {
  if (panel.querySelector("textarea")) return;
  const area = /** @type {HTMLTextAreaElement} */ (element("textarea", { "aria-label": "SQL", spellcheck: "false" }));
  area.value = text;
  const run = element("button", { type: "button" }, "Run (Ctrl+Enter)");
  const words = element("div", { class: "note", "aria-live": "polite" });
  const result = element("div");
  panel.replaceChildren(area, element("div", { class: "tools" }, run, copyButton("Copy command", () => sqlCommand(timeline.trace.path, text)), words), result);
  /** @type {AbortController | null} */
  let running = null;
  const go = async () => {
    text = area.value;
    running?.abort();
    running = new AbortController();
    result.replaceChildren(note("…"));
    try {
      const answer = await timeline.source.sql(text, running.signal);
      show(result, answer, timeline);
    } catch (error) {
      if (!isAbort(error)) result.replaceChildren(note(/** @type {Error} */ (error).message));
    }
  };
  run.addEventListener("click", go);
  area.addEventListener("input", () => { text = area.value; });
  area.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); go(); }
    if (event.key === "Tab" && !event.shiftKey) {
      if (!candidates) later();
      if (!candidates || complete(area, words, candidates)) event.preventDefault();
    }
    if (event.key === "Escape") area.blur();
  });
  /** @type {import("./completion.js").Names | null} */
  let candidates = null;
  const load = () => names(timeline.source).then((found) => { candidates = found; }, (error) => { words.textContent = error.message; });
  /** Tab before the names are there: completes when they are, if nothing else was typed meanwhile. */
  const later = async () => {
    const before = area.value.slice(0, area.selectionStart);
    area.setAttribute("aria-busy", "true");
    await load();
    area.removeAttribute("aria-busy");
    if (candidates && area.value.slice(0, area.selectionStart) === before) complete(area, words, candidates);
  };
  await load();
}

/** Completes the word before the cursor; shows the candidates, if there are several.
 * @param {HTMLTextAreaElement} area @param {HTMLElement} words @param {import("./completion.js").Names} names */
function complete(area, words, names) {
  const { value, selectionStart: at } = area;
  const found = completion(value.slice(0, at), value, names);
  if (!found) return false;
  area.setRangeText(found.common, at - found.begun.length, at, "end");
  words.textContent = found.found.length > 1 ? found.found.slice(0, 30).join("  ") : "";
  return true;
}

/** @param {HTMLElement} result @param {any} answer @param {import("../timeline.js").Timeline} timeline */
function show(result, answer, timeline) {
  const at = answer.columns.findIndex((/** @type {any} */ column) => column.name === "ts_tick");
  const first = BigInt(answer.first_tick);
  const ticks = at < 0 ? [] : answer.rows.map((/** @type {any[]} */ row) => /^-?\d+$/.test(String(row[at])) ? Number(BigInt(row[at]) - first) : null);
  timeline.mark(ticks.filter((/** @type {number | null} */ tick) => tick !== null));
  result.replaceChildren(
    note(`${counted(answer.rows.length, "row")}${answer.more ? ", and more" : ""}${at >= 0 ? "; each is a line on the timeline" : ""}`),
    table("Result", answer.columns.map((/** @type {any} */ column) => ({ name: column.name, about: column.type, number: /Int|Float/.test(column.type) })),
      answer.rows.slice(0, 2000).map((/** @type {any[]} */ row) => row.map((value, place) => ({ text: value === null ? "" : String(value), number: /Int|Float/.test(answer.columns[place].type) }))),
      at < 0 ? null : (place) => { if (ticks[place] !== null) timeline.jump(ticks[place]); }),
  );
}
