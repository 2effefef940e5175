// @ts-check
// The events of the window.

import * as api from "../api.js";
import { instant } from "../format.js";
import { element, note, table } from "./table.js";

let name = "";

/** @param {HTMLElement} panel @param {import("../main.js").Page} page @param {AbortSignal} signal */
export async function listing(panel, page, signal) {
  const window = page.focus.range ?? page.navigation.window;
  const key = page.focus.row?.key;
  const answer = await api.ask("events", { from: window.from, to: window.to, key, name, limit: 500 }, signal);
  const input = /** @type {HTMLInputElement} */ (element("input", { type: "search", "aria-label": "Events whose name contains", placeholder: "event, or ^name", value: name }));
  input.addEventListener("change", () => { name = input.value; page.refreshPanel(); });
  panel.replaceChildren(
    element("div", { class: "tools" }, input, note(`Events ${key ? `of ${key}` : "of all"} in the ${page.focus.range ? "selected interval" : "window"}${answer.more ? ": the first 500" : ""}`)),
    table("Events", [{ name: "at" }, { name: "level" }, { name: "event" }, { name: "CPU" }, { name: "LWP" }, { name: "thread" }, { name: "parameters" }],
      answer.rows.map((/** @type {any} */ row) => [
        { text: instant(row.at, 1, page.trace.tick_hz) }, { text: row.level }, { text: row.name },
        { text: row.cpu ?? "" }, { text: row.lwp ?? "" }, { text: row.thread ?? "" }, { text: row.text },
      ]), (place) => page.jump(answer.rows[place].at)),
  );
}
