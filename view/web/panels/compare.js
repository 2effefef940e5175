// @ts-check
// Two super-traces in the same measure, side by side: the figures of `--compare A B`.

import { ask, isAbort } from "../api.js";
import { answerTable } from "./answer.js";
import { form, used, whatIsMissing } from "./measures.js";
import { copyButton, element, note } from "./table.js";

const asked = { name: "summary", by: "", subject: "", from: "", to: "", worst: "" };

/** @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline @param {AbortSignal} signal */
export async function compare(panel, timeline, signal) {
  const { page } = timeline;
  const { comparison } = page;
  const [a, b] = page.timelines;
  if (!comparison || !b) { panel.replaceChildren(note("There is no second super-trace: `sigmund view A B` compares two.")); return; }
  const tools = form(a, asked, () => page.refreshPanel(), false);
  const missing = whatIsMissing(a, asked);
  panel.replaceChildren(tools, note(missing ?? "…"));
  if (missing) return;
  const window = a.focus.range ?? a.navigation.window;
  // The command has one window for both: a time since the begin of each.
  const isWhole = comparison.navigation.shift !== 0 || (window.from <= 0 && window.to >= a.trace.ticks);
  const measure = a.trace.measures.find((/** @type {any} */ measure) => measure.name === asked.name);
  let answer;
  try {
    answer = await ask("compare", { name: asked.name, by: asked.by, ...used(measure, asked),
      from: isWhole ? undefined : window.from, to: isWhole ? undefined : window.to }, signal);
  } catch (error) {
    if (isAbort(error)) throw error;
    panel.replaceChildren(tools, note(/** @type {Error} */ (error).message));
    return;
  }
  const whole = comparison.navigation.shift === 0 ? "All of both" : "All of both: a window is compared while they are aligned by the begin";
  panel.replaceChildren(tools,
    note(`${isWhole ? whole : `The same ${a.focus.range ? "selected interval" : "window"} of both, from their begins`}. A is ${a.trace.name}, B is ${b.trace.name}.`),
    ...answerTable("Comparison", answer, a),
    element("div", { class: "tools" }, copyButton("Copy command", () => answer.command)),
    element("code", {}, answer.command));
}
