// @ts-check
// Latency from one event to another: the distribution as bars, each of which leads to its worst example.

import * as api from "../api.js";
import { instant, length, percent } from "../format.js";
import { copyButton, element, note, table } from "./table.js";

const MOST = 10_000;
const asked = { from: "", to: "" };

/** @param {HTMLElement} panel @param {import("../main.js").Page} page @param {AbortSignal} signal */
export async function latency(panel, page, signal) {
  const window = page.focus.range ?? page.navigation.window;
  const hz = page.trace.tick_hz;
  const tools = form(page);
  if (!asked.from || !asked.to) {
    panel.replaceChildren(tools, note("FROM and TO are events: NAME, NAME(VALUE) or NAME(field=VALUE), optionally followed by @THREAD. Pairs are matched by cause."));
    return;
  }
  panel.replaceChildren(tools, note("…"));
  const isWhole = window.from <= 0 && window.to >= page.trace.ticks;
  const question = { name: "reactivity", pair_from: asked.from, pair_to: asked.to, keys: page.focus.row?.key,
    from: isWhole ? undefined : window.from, to: isWhole ? undefined : window.to };
  let pairs, why;
  try {
    [pairs, why] = await Promise.all([api.ask("measure", { ...question, worst: MOST }, signal), api.ask("measure", question, signal)]);
  } catch (error) {
    if (api.isAbort(error)) throw error;
    panel.replaceChildren(tools, note(/** @type {Error} */ (error).message));
    return;
  }
  const column = (/** @type {string} */ kind, /** @type {any} */ answer) => answer.columns.findIndex((/** @type {any} */ column) => column.kind === kind);
  const at = column("instant", pairs), took = column("length", pairs);
  /** @type {{at: number, took: number}[]} */
  const found = pairs.rows.map((/** @type {any[]} */ row) => ({ at: Number(row[at]), took: Number(row[took]) })).filter((/** @type {any} */ pair) => pair.took >= 0);
  if (found.length === 0) { panel.replaceChildren(tools, note("No pair of these events here."), ...pairs.notes.map(note)); return; }
  const text = (/** @type {any} */ value, /** @type {any} */ column) => value === null ? "" : column.kind === "length" ? length(Number(value), hz)
    : column.kind === "instant" ? instant(Number(value), 1, hz) : typeof value === "number" && !Number.isInteger(value) ? value.toFixed(2) : String(value);
  panel.replaceChildren(tools,
    note(`${found.length}${found.length === MOST ? " slowest" : ""} pairs; a bar leads to its slowest one`),
    bars(found, page),
    table("Why", why.columns.map((/** @type {any} */ column) => ({ name: column.name, about: column.about, number: column.kind !== "text" })),
      why.rows.slice(0, 50).map((/** @type {any[]} */ row) => row.map((value, place) => ({ text: text(value, why.columns[place]), number: why.columns[place].kind !== "text" })))),
    ...why.notes.map(note),
    element("div", { class: "tools" }, copyButton("Copy command", () => why.command), copyButton("Copy SQL", () => why.sql)),
    element("code", {}, why.command));
}

/** Bars of equal ratio, from the shortest to the longest; with the share of pairs up to each. @param {{at: number, took: number}[]} pairs @param {import("../main.js").Page} page */
function bars(pairs, page) {
  const hz = page.trace.tick_hz;
  const sorted = [...pairs].sort((a, b) => a.took - b.took);
  const low = Math.max(sorted[0].took, 1), high = Math.max(sorted[sorted.length - 1].took, low + 1);
  const count = 32, ratio = (high / low) ** (1 / count);
  const holder = element("div", { class: "bars", role: "list", "aria-label": "Distribution of the latency" });
  let begin = 0;
  const groups = Array.from({ length: count }, (_, bar) => {
    const edge = bar === count - 1 ? Infinity : low * ratio ** (bar + 1);
    let end = begin;
    while (end < sorted.length && sorted[end].took < edge) end++;
    const group = sorted.slice(begin, end);
    begin = end;
    return { group, upTo: end };
  });
  const most = Math.max(...groups.map(({ group }) => group.length));
  for (const { group, upTo } of groups) {
    if (group.length === 0) {
      const space = element("span", { role: "listitem", "aria-label": "none" });
      space.style.width = "18px";
      holder.append(space);
      continue;
    }
    const worst = group[group.length - 1];
    const label = `${group.length} of ${length(group[0].took, hz)} to ${length(worst.took, hz)}; ${percent(upTo / sorted.length)} are at most that`;
    const bar = element("button", { type: "button", title: label, "aria-label": label });
    bar.style.width = "18px";
    bar.style.padding = "0";
    bar.style.height = `${Math.max(4, (group.length / most) * 86)}px`;
    bar.style.background = "var(--accent)";
    bar.addEventListener("click", () => {
      page.focus.range = { from: worst.at, to: worst.at + worst.took };
      page.focus.tick = worst.at;
      page.navigation.show(worst.at, worst.at + worst.took);
    });
    const item = element("span", { role: "listitem" }, bar);
    holder.append(item);
  }
  return holder;
}

/** @param {import("../main.js").Page} page */
function form(page) {
  const input = (/** @type {"from" | "to"} */ name, /** @type {string} */ label) => {
    const made = /** @type {HTMLInputElement} */ (element("input", { "aria-label": label, placeholder: label, size: "34", value: asked[name], spellcheck: "false" }));
    made.addEventListener("change", () => { asked[name] = made.value.trim(); page.refreshPanel(); });
    return made;
  };
  return element("div", { class: "tools" }, input("from", "FROM, e.g. irq_handler_entry(irq=24)"), input("to", "TO, e.g. received_msg@daemon"));
}
