// @ts-check
// Latency from one event to another, or the length of a span: the distribution as bars, each of which leads to its worst
// example, and how many are at most as long.

import { isAbort } from "../api.js";
import { answerTable } from "./answer.js";
import { distribution } from "./distribution.js";
import { copyButton, element, note } from "./table.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** What took how long. @typedef {{at: number, took: number, key: string | null}} Example */

const MOST = 10_000;
const asked = { from: "", to: "", span: "" };

/** @param {HTMLElement} panel @param {Timeline} timeline @param {AbortSignal} signal */
export async function latency(panel, timeline, signal) {
  const tools = form(timeline);
  if (!asked.span && (!asked.from || !asked.to)) {
    panel.replaceChildren(tools, note("FROM and TO are events: NAME, NAME(VALUE) or NAME(field=VALUE), optionally followed by @THREAD. Pairs are matched by cause. SPAN is the name of a span or function."));
    return;
  }
  panel.replaceChildren(tools, note("…"));
  try {
    const { found, count, parts } = asked.span ? await spans(timeline, signal) : await pairs(timeline, signal);
    const what = asked.span ? "instances" : "pairs";
    if (found.length === 0) { panel.replaceChildren(tools, note(`No ${what} here.`), ...parts); return; }
    panel.replaceChildren(tools,
      note(`${count} ${what}${found.length < count ? `, of which the ${found.length} slowest are drawn` : ""}; a bar leads to its slowest one`),
      distribution(found, count, timeline), ...parts);
  } catch (error) {
    if (isAbort(error)) throw error;
    panel.replaceChildren(tools, note(/** @type {Error} */ (error).message));
  }
}

/** @param {Timeline} timeline @param {AbortSignal} signal @returns {Promise<{found: Example[], count: number, parts: Node[]}>} */
async function pairs(timeline, signal) {
  const window = timeline.focus.range ?? timeline.navigation.window;
  const isWhole = window.from <= 0 && window.to >= timeline.trace.ticks;
  const question = { name: "reactivity", pair_from: asked.from, pair_to: asked.to, keys: timeline.focus.row?.key,
    from: isWhole ? undefined : window.from, to: isWhole ? undefined : window.to };
  const { source } = timeline;
  const [slowest, why] = await Promise.all([source.ask("measure", { ...question, worst: MOST }, signal), source.ask("measure", question, signal)]);
  const place = (/** @type {any} */ answer, /** @type {string} */ name) => answer.columns.findIndex((/** @type {any} */ column) => column.name === name);
  const [at, took, thread, lwp] = ["from_tick", "dur_tick", "thread", "lwp"].map((name) => place(slowest, name));
  const found = slowest.rows.map((/** @type {any[]} */ row) => ({ at: Number(row[at]), took: Number(row[took]),
    key: row[thread] !== null ? `thread:${row[thread]}` : row[lwp] !== null ? `lwp:${row[lwp]}` : null })).filter((/** @type {Example} */ pair) => pair.took >= 0);
  const all = why.rows.find((/** @type {any[]} */ row) => row[place(why, "row")] === "pairs" && row[place(why, "what")] === "all");
  return { found, count: Math.max(Number(all?.[place(why, "count")] ?? 0), found.length), parts: [
    ...answerTable("Why", { ...why, rows: why.rows.slice(0, 50) }, timeline),
    element("div", { class: "tools" }, copyButton("Copy command", () => why.command), copyButton("Copy SQL", () => why.sql)),
    element("code", {}, why.command)] };
}

/** Spans that begin and end in the window. @param {Timeline} timeline @param {AbortSignal} signal @returns {Promise<{found: Example[], count: number, parts: Node[]}>} */
async function spans(timeline, signal) {
  const window = timeline.focus.range ?? timeline.navigation.window;
  const key = timeline.focus.row?.kind === "cpu" ? undefined : timeline.focus.row?.key;
  const first = BigInt(timeline.trace.first_tick);
  const where = [`name = '${asked.span.replaceAll("'", "''")}'`, `ts_tick >= ${first + BigInt(window.from)}`, `ts_tick + dur_tick <= ${first + BigInt(window.to)}`, "end_reason IN ('returned', 'exit')"];
  if (key) where.push(`${key.split(":")[0]} = ${BigInt.asIntN(64, BigInt(key.split(":")[1]))}`);
  const text = `SELECT ts_tick, dur_tick, thread, lwp, count(*) OVER () AS instances FROM spans WHERE ${where.join(" AND ")} ORDER BY dur_tick DESC, ts_tick LIMIT ${MOST}`;
  const answer = await timeline.source.sql(text, signal);
  const found = answer.rows.map((/** @type {any[]} */ [at, took, thread, lwp]) => ({ at: Number(BigInt(at) - first), took: Number(took),
    key: thread !== null ? `thread:${thread}` : lwp !== null ? `lwp:${lwp}` : null }));
  return { found, count: Number(answer.rows[0]?.[4] ?? 0), parts: [element("div", { class: "tools" }, copyButton("Copy SQL", () => text)), element("code", {}, text)] };
}

/** @param {Timeline} timeline */
function form(timeline) {
  const input = (/** @type {"from" | "to" | "span"} */ name, /** @type {string} */ label, /** @type {number} */ size) => {
    const made = /** @type {HTMLInputElement} */ (element("input", { "aria-label": label, placeholder: label, size: String(size), value: asked[name], spellcheck: "false" }));
    made.addEventListener("change", () => { asked[name] = made.value.trim(); timeline.page.refreshPanel(); });
    return made;
  };
  return element("div", { class: "tools" }, input("from", "FROM, e.g. irq_handler_entry(irq=24)", 34), input("to", "TO, e.g. received_msg@daemon", 34), "or", input("span", "SPAN", 20));
}
