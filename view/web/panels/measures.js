// @ts-check
// Any measure of the focused row, or of all, in the window.

import { isAbort } from "../api.js";
import { printable } from "../format.js";
import { answerTable } from "./answer.js";
import { braids } from "./braids.js";
import { copyButton, element, note } from "./table.js";

const asked = { name: "states", by: "", subject: "", from: "", to: "", worst: "" };

/** @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline @param {AbortSignal} signal */
export async function measures(panel, timeline, signal) {
  const window = timeline.focus.range ?? timeline.navigation.window;
  const tools = form(timeline, asked, () => timeline.page.refreshPanel());
  const measure = timeline.trace.measures.find((/** @type {any} */ measure) => measure.name === asked.name);
  const missing = whatIsMissing(timeline, asked, timeline.focus.row?.key);
  panel.replaceChildren(tools, note(`${measure?.about ?? ""} ${missing ?? "…"}`));
  if (missing) {
    timeline.chain([]);
    return;
  }
  const isWhole = window.from <= 0 && window.to >= timeline.trace.ticks;
  const question = { name: asked.name, by: asked.by, ...used(measure, asked), keys: timeline.focus.row?.key, from: isWhole ? undefined : window.from, to: isWhole ? undefined : window.to };
  let answer;
  try {
    answer = await timeline.source.ask("measure", question, signal);
  } catch (error) {
    if (isAbort(error)) throw error;
    panel.replaceChildren(tools, note(measure?.about ?? ""), note(/** @type {Error} */ (error).message));
    return;
  }
  // A braid of explain that was clicked keeps its path.
  if (asked.name !== "explain") timeline.chain(asked.name === "critical-path" ? links(answer) : []);
  const drawn = element("div");
  panel.replaceChildren(tools,
    note(measure ? `${measure.about} ${timeline.focus.row ? `Of ${timeline.focus.row.key}.` : "Of all."}` : ""),
    drawn,
    ...answerTable(asked.name, answer, timeline),
    ...(asked.name === "critical-path" ? [note("With worst N, the links of the first chain are drawn on the rows that are visible; a click on one jumps there.")] : []),
    element("div", { class: "tools" }, copyButton("Copy command", () => answer.command), copyButton("Copy SQL", () => answer.sql)),
    element("code", {}, answer.command),
    ...(measure ? [definition(measure)] : []),
  );
  if (asked.name === "explain") await braids(drawn, timeline, question, signal);
}

/** The exact definition of a measure, closed: paragraphs, and lists of points. @param {{ definition: string }} measure */
function definition(measure) {
  /** @type {HTMLElement[]} */
  const parts = [];
  for (const line of measure.definition.split("\n").filter((line) => line !== "")) {
    if (!line.startsWith("- ")) {
      parts.push(note(line));
      continue;
    }
    if (parts.at(-1)?.tagName !== "UL") parts.push(element("ul"));
    parts.at(-1)?.append(element("li", {}, printable(line.slice(2))));
  }
  return element("details", {}, element("summary", {}, "Definition"), ...parts);
}

/** Of what was entered, the arguments that a measure uses: others are refused, and stay entered for the next one.
 * @param {{ arguments: string[] } | undefined} measure @param {Record<"subject" | "from" | "to" | "worst", string>} asked */
export function used(measure, asked) {
  const uses = (/** @type {string} */ name) => measure?.arguments.includes(name) ?? false;
  const [subject, pair] = [uses("of") ? asked.subject : "", uses("from_event")];
  return { subject, pair_from: pair ? asked.from : "", pair_to: pair ? asked.to : "", worst: uses("worst") ? asked.worst : "" };
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

/** What has to be named before a measure can be asked for; `null` if all is. @param {import("../timeline.js").Timeline} timeline
 * @param {Record<"name" | "subject" | "from" | "to", string>} asked @param {string} [key] The row that is asked about. */
export function whatIsMissing(timeline, asked, key) {
  const { required } = timeline.trace.measures.find((/** @type {any} */ measure) => measure.name === asked.name) ?? {};
  const [hasSubject, hasPair] = [asked.subject !== "", asked.from !== "" && asked.to !== ""];
  switch (required) {
    case "subject": return hasSubject ? null : "Name a span or a lock.";
    case "subject or pair": return hasSubject || hasPair ? null : "Name a span, or two events: FROM and TO.";
    case "subject, pair or actor":
      return hasSubject || hasPair || /^(thread|lwp):/.test(key ?? "") ? null : "Focus a thread or an LWP, or name a span, or two events: FROM and TO.";
    case "pair": return hasPair ? null : "Name two events: FROM and TO.";
    default: return null;
  }
}

/** What is asked for. @param {import("../timeline.js").Timeline} timeline @param {Record<"name" | "by" | "subject" | "from" | "to" | "worst", string>} asked
 * @param {() => void} changed @param {boolean} [withWorst] */
export function form(timeline, asked, changed, withWorst = true) {
  const choose = element("select", { "aria-label": "Measure" }, ...timeline.trace.measures.map((/** @type {any} */ measure) =>
    element("option", { value: measure.name, ...(measure.name === asked.name ? { selected: "" } : {}) }, measure.name)));
  const by = element("select", { "aria-label": "A row for each" }, ...["", "thread", "lwp", "process", "name", "pattern"].map((word) =>
    element("option", { value: word, ...(word === asked.by ? { selected: "" } : {}) }, word === "" ? "by default" : `by ${word}`)));
  /** @param {"subject" | "from" | "to" | "worst"} name @param {string} label */
  const input = (name, label) => {
    const made = element("input", { "aria-label": label, placeholder: label, size: "14", value: asked[name], spellcheck: "false" });
    made.addEventListener("change", () => { asked[name] = /** @type {HTMLInputElement} */ (made).value; changed(); });
    return made;
  };
  choose.addEventListener("change", () => { asked.name = /** @type {HTMLSelectElement} */ (choose).value; changed(); });
  by.addEventListener("change", () => { asked.by = /** @type {HTMLSelectElement} */ (by).value; changed(); });
  return element("div", { class: "tools" }, choose, by, input("subject", "span or lock"), input("from", "FROM event"), input("to", "TO event"),
    ...(withWorst ? [input("worst", "worst N")] : []));
}
