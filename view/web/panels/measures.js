// @ts-check
// Any measure of the focused row, or of all, in the window.

import * as api from "../api.js";
import { instant, length } from "../format.js";
import { copyButton, element, note, table } from "./table.js";

const asked = { name: "states", by: "", subject: "", from: "", to: "", worst: "" };

/** @param {HTMLElement} panel @param {import("../main.js").Page} page @param {AbortSignal} signal */
export async function measures(panel, page, signal) {
  const window = page.focus.range ?? page.navigation.window;
  const hz = page.trace.tick_hz;
  const tools = form(page);
  const measure = page.trace.measures.find((/** @type {any} */ measure) => measure.name === asked.name);
  panel.replaceChildren(tools, note(`${measure?.about ?? ""} …`));
  const isWhole = window.from <= 0 && window.to >= page.trace.ticks;
  let answer;
  try {
    answer = await api.ask("measure", { name: asked.name, by: asked.by, subject: asked.subject, pair_from: asked.from, pair_to: asked.to,
      worst: asked.worst, keys: page.focus.row?.key, from: isWhole ? undefined : window.from, to: isWhole ? undefined : window.to }, signal);
  } catch (error) {
    if (api.isAbort(error)) throw error;
    panel.replaceChildren(tools, note(measure?.about ?? ""), note(/** @type {Error} */ (error).message));
    return;
  }
  /** @param {any} value @param {any} column */
  const text = (value, column) => value === null ? "" : column.kind === "length" ? length(Number(value), hz)
    : column.kind === "instant" ? instant(Number(value), 1, hz) : typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : String(value);
  const isNumber = (/** @type {any} */ column) => column.kind !== "text";
  page.chain(asked.name === "critical-path" ? links(answer) : []);
  const instants = answer.columns.findIndex((/** @type {any} */ column) => column.kind === "instant");
  panel.replaceChildren(tools,
    note(measure ? `${measure.about} ${page.focus.row ? `Of ${page.focus.row.key}.` : "Of all."}` : ""),
    ...(answer.rows.length === 0 ? [note("No rows: nothing of this kind happened here, or it was not recorded.")] : []),
    table(asked.name, answer.columns.map((/** @type {any} */ column) => ({ name: column.name, about: column.about, number: isNumber(column) })),
      answer.rows.slice(0, 1000).map((/** @type {any[]} */ row) => row.map((value, place) => ({ text: text(value, answer.columns[place]), number: isNumber(answer.columns[place]) }))),
      instants < 0 ? null : (place) => page.jump(Number(answer.rows[place][instants]))),
    ...answer.notes.map(note),
    ...(asked.name === "critical-path" ? [note("With worst N, the links of the first chain are drawn on the rows that are visible; a click on one jumps there.")] : []),
    element("div", { class: "tools" }, copyButton("Copy command", () => answer.command), copyButton("Copy SQL", () => answer.sql)),
    element("code", {}, answer.command),
  );
}

/** The links of the first chain that a critical path lists (worst N), with the rows that they are on. @param {any} answer */
function links(answer) {
  const place = (/** @type {string} */ name) => answer.columns.findIndex((/** @type {any} */ column) => column.name === name);
  const [instance, at, took, thread, lwp, cpu] = ["instance", "ts_tick", "dur_tick", "thread", "lwp", "cpu"].map(place);
  if (instance < 0 || at < 0 || took < 0) return [];
  const key = (/** @type {string} */ kind, /** @type {any} */ number) => (number === null || number === undefined ? null : `${kind}:${number}`);
  return answer.rows.filter((/** @type {any[]} */ row) => row[instance] === answer.rows[0][instance]).map((/** @type {any[]} */ row) => ({
    from: Number(row[at]), to: Number(row[at]) + Number(row[took]),
    keys: [key("thread", row[thread]), key("lwp", row[lwp]), key("cpu", row[cpu])].filter((key) => key !== null),
  }));
}

/** @param {import("../main.js").Page} page */
function form(page) {
  const choose = element("select", { "aria-label": "Measure" }, ...page.trace.measures.map((/** @type {any} */ measure) =>
    element("option", { value: measure.name, ...(measure.name === asked.name ? { selected: "" } : {}) }, measure.name)));
  const by = element("select", { "aria-label": "A row for each" }, ...["", "thread", "lwp", "process", "name", "pattern"].map((word) =>
    element("option", { value: word, ...(word === asked.by ? { selected: "" } : {}) }, word === "" ? "by default" : `by ${word}`)));
  /** @param {"subject" | "from" | "to" | "worst"} name @param {string} label */
  const input = (name, label) => {
    const made = element("input", { "aria-label": label, placeholder: label, size: "14", value: asked[name], spellcheck: "false" });
    made.addEventListener("change", () => { asked[name] = /** @type {HTMLInputElement} */ (made).value; page.refreshPanel(); });
    return made;
  };
  choose.addEventListener("change", () => { asked.name = /** @type {HTMLSelectElement} */ (choose).value; page.refreshPanel(); });
  by.addEventListener("change", () => { asked.by = /** @type {HTMLSelectElement} */ (by).value; page.refreshPanel(); });
  return element("div", { class: "tools" }, choose, by, input("subject", "span or lock"), input("from", "FROM event"), input("to", "TO event"), input("worst", "worst N"));
}
