// @ts-check
// Statistics of the focused row, or of all, in the selected interval or in the window: the time in each state; and, once
// they are opened, who had its CPU, its events, system calls and locks.

import { isAbort } from "../api.js";
import { length, percent } from "../format.js";
import { stateColour } from "../palette.js";
import { answerTable } from "./answer.js";
import { copyButton, element, note, table } from "./table.js";

/** @typedef {import("../timeline.js").Timeline} Timeline */
/** What statistics are about. @typedef {{timeline: Timeline, window: {from: number, to: number}, key: string | undefined, signal: AbortSignal}} About */

/** @type {[string, string, (about: About) => Promise<(Node | string)[]>][]} */
const SECTIONS = [
  ["culprits", "Culprits: who had the CPU while it was runnable", culprits],
  ["events", "Events", (about) => counted(about, "events", (where) =>
    `SELECT level, name, count(*) AS events FROM events WHERE ${where} GROUP BY level, name ORDER BY events DESC, name`)],
  ["syscalls", "System calls", (about) => counted(about, "syscalls", (where) =>
    `SELECT name, count(*) AS calls, sum(dur_tick) AS total_tick, max(dur_tick) AS longest_tick, sum(off_cpu_tick) AS off_cpu_tick FROM syscalls WHERE ${where} GROUP BY name ORDER BY total_tick DESC, name`)],
  ["locks", "Locks", (about) => measured(about, "locks")],
];
/** Sections that are open: they stay so. @type {Set<string>} */
const open = new Set();

/** @param {HTMLElement} panel @param {Timeline} timeline @param {AbortSignal} signal */
export async function selection(panel, timeline, signal) {
  const { row, range } = timeline.focus;
  const window = range ?? timeline.navigation.window;
  const hz = timeline.trace.tick_hz;
  const key = row && row.kind !== "cpu" ? row.key : undefined;
  const answer = await timeline.source.ask("selection", { from: window.from, to: window.to, keys: key }, signal);
  const whose = row && key ? `${row.kind} ${row.label}` : timeline.trace.counts.threads ? "all user threads" : "all LWPs";
  const rows = answer.states.sort((/** @type {any} */ a, /** @type {any} */ b) => b.ticks - a.ticks);
  const text = () => rows.map((/** @type {any} */ state) => `${state.state}\t${state.ticks}\t${percent(state.share)}`).join("\n");
  panel.replaceChildren(
    element("div", { class: "tools" }, element("strong", {}, `${whose}, ${length(window.to - window.from, hz)}`),
      copyButton("Copy text", text), copyButton("Copy SQL", () => answer.sql), copyButton("Copy command", () => answer.command)),
    table("Time in each state", [{ name: "state" }, { name: "ticks", number: true }, { name: "time", number: true }, { name: "share", number: true }],
      rows.map((/** @type {any} */ state) => [
        { text: state.state, swatch: stateColour(state.state) }, { text: String(state.ticks), number: true },
        { text: length(state.ticks, hz), number: true }, { text: percent(state.share), number: true },
      ])),
    note(range ? "Of the selected interval (Shift and drag); Escape clears it." : "Of the window. Shift and drag selects an interval."),
    element("code", {}, answer.command),
    ...SECTIONS.map(([name, title, load]) => section(name, title, () => load({ timeline, window, key: row?.key, signal }))),
  );
}

/** What is asked for only when it is opened. @param {string} name @param {string} title @param {() => Promise<(Node | string)[]>} load */
function section(name, title, load) {
  const content = element("div");
  const made = /** @type {HTMLDetailsElement} */ (element("details", { id: `statistics-${name}` }, element("summary", {}, title), content));
  const show = () => {
    content.replaceChildren(note("…"));
    load().then((parts) => content.replaceChildren(...parts), (error) => { if (!isAbort(error)) content.replaceChildren(note(error.message)); });
  };
  made.open = open.has(name);
  if (made.open) show();
  made.addEventListener("toggle", () => {
    if (made.open === open.has(name)) return;
    if (made.open) { open.add(name); show(); } else open.delete(name);
  });
  return made;
}

/** Counts of a table, by SQL. @param {About} about @param {string} whole the table @param {(where: string) => string} query */
async function counted({ timeline, window, key, signal }, whole, query) {
  if (!timeline.trace.tables.includes(whole)) return [note("This super-trace has no table of them.")];
  const first = BigInt(timeline.trace.first_tick);
  const [from, to] = [first + BigInt(window.from), first + BigInt(window.to)];
  const where = [`ts_tick >= ${from}`, `ts_tick < ${to}`];
  if (key?.startsWith("cpu:") && whole === "syscalls") return [note("System calls are of LWPs: focus one.")];
  if (key) where.push(`${key.split(":")[0]} = ${BigInt.asIntN(64, BigInt(key.split(":")[1]))}`);
  const text = query(where.join(" AND "));
  const answer = await timeline.source.sql(text, signal);
  const hz = timeline.trace.tick_hz;
  const isLength = (/** @type {any} */ column) => column.name.endsWith("_tick");
  const isNumber = (/** @type {any} */ column) => /Int|Float/.test(column.type);
  return [
    ...(answer.rows.length === 0 ? [note("None here.")] : []),
    table(whole, answer.columns.map((/** @type {any} */ column) => ({ name: column.name, number: isNumber(column) })),
      answer.rows.map((/** @type {any[]} */ row) => row.map((value, place) => {
        const column = answer.columns[place];
        return { text: value === null ? "" : isLength(column) ? length(Number(value), hz) : String(value), number: isNumber(column) };
      }))),
    element("div", { class: "tools" }, copyButton("Copy SQL", () => text)),
  ];
}

/** @param {About} about @param {string} name of a measure */
async function measured({ timeline, window, key, signal }, name) {
  const answer = await timeline.source.ask("measure", { name, keys: key, from: window.from, to: window.to }, signal);
  return [...answerTable(name, answer, timeline), element("div", { class: "tools" }, copyButton("Copy command", () => answer.command), copyButton("Copy SQL", () => answer.sql))];
}

/** The rows of `--states` that name who had the CPU. @param {About} about */
async function culprits({ timeline, window, key, signal }) {
  if (key?.startsWith("cpu:")) return [note("A CPU waits for nobody: focus a user thread or an LWP.")];
  const by = key ? undefined : timeline.trace.counts.threads ? "pattern" : "lwp";
  const answer = await timeline.source.ask("measure", { name: "states", keys: key, by, from: window.from, to: window.to }, signal);
  const culprit = answer.columns.findIndex((/** @type {any} */ column) => column.name === "culprit");
  answer.rows = answer.rows.filter((/** @type {any[]} */ row) => row[culprit] !== null);
  return [...answerTable("Culprits", answer, timeline), element("div", { class: "tools" }, copyButton("Copy command", () => answer.command), copyButton("Copy SQL", () => answer.sql))];
}
