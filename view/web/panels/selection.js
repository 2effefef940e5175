// @ts-check
// The time in each state of the focused row, or of all, in the selected interval or in the window.

import * as api from "../api.js";
import { length, percent } from "../format.js";
import { stateColour } from "../palette.js";
import { copyButton, element, note, table } from "./table.js";

/** @param {HTMLElement} panel @param {import("../main.js").Page} page @param {AbortSignal} signal */
export async function selection(panel, page, signal) {
  const { row, range } = page.focus;
  const window = range ?? page.navigation.window;
  const hz = page.trace.tick_hz;
  const key = row && row.kind !== "cpu" ? row.key : undefined;
  const answer = await api.ask("selection", { from: window.from, to: window.to, keys: key }, signal);
  const whose = row && key ? `${row.kind} ${row.label}` : page.trace.counts.threads ? "all user threads" : "all LWPs";
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
  );
}
