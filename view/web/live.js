// @ts-check
// A running program: asked each second, until it is frozen.

import * as api from "./api.js";
import { byId } from "./document.js";
import { printable } from "./format.js";
import { byState, waits } from "./live_threads.js";
import { fromFragment, toFragment } from "./navigation.js";
import { stateColour } from "./palette.js";
import { element, note, table } from "./panels/table.js";

const EACH_MS = 1000;
/** Threads that are listed under one, and in all. */
const MOST = 200;

/** @typedef {import("./live_threads.js").Thread} Thread */
/** @typedef {import("./live_threads.js").Branch} Branch */

let looks = 0;

async function look() {
  const now = await api.ask("live");
  const { facts } = now;
  document.title = `${printable(facts.program ?? now.pid)} · Sigmund, live`;
  byId("title").textContent = printable(`${facts.program ?? ""} (process ${now.pid})`);
  byId("facts").textContent = printable(`recorded for ${Number(facts.for_seconds ?? 0).toFixed(0)} s, ${facts.mode}, ${facts.events_on} of ${facts.events} events on, ${facts.lost_without_ring ?? 0} lost without a buffer`);
  states(now.threads, now.not_shown);
  chains(now.threads);
  buffers(now.lwps);
  looks++;
}

/** @param {Thread[]} threads @param {number} more */
function states(threads, more) {
  const counts = byState(threads);
  byId("states").replaceChildren(
    ...(counts.length === 0 ? [note("No user threads: it has none, or runs on another runtime.")] : []),
    table("User threads by state", [{ name: "state" }, { name: "threads", number: true }], counts.map(([state, count]) => [
      { text: state, swatch: stateColour(state === "running" ? "active" : state) }, { text: String(count), number: true },
    ])), ...(more > 0 ? [note(`and ${more} more`)] : []));
}

/** @param {Thread[]} threads */
function chains(threads) {
  const { roots, cycles } = waits(threads);
  const parts = cycles.map((cycle) => {
    const made = element("p", { class: "cycle" }, printable(`Deadlock: ${cycle.map(label).join(" waits for ")} waits for ${label(cycle[0])}`));
    return made;
  });
  const list = roots.filter((root) => root.waiting.length > 0).sort((a, b) => size(b) - size(a));
  const tree = element("ul", { class: "waits" }, ...list.slice(0, MOST).map(branch));
  byId("waits").replaceChildren(...parts, ...(list.length ? [tree] : [note("No user thread waits for another one.")]));
}

/** @param {Branch} of @returns {HTMLElement} */
function branch(of) {
  const { thread } = of;
  const swatch = element("span", { class: "swatch" });
  swatch.style.background = stateColour(thread.state === "running" ? "active" : thread.state);
  const what = thread.waits_for ? `, waits for ${thread.waits_for}${thread.on ? ` ${thread.on}` : ""}` : "";
  const line = element("li", {}, swatch, printable(`${label(thread)}: ${thread.state}${thread.lwp === null ? "" : ` on LWP ${thread.lwp}`}${what}`));
  if (of.waiting.length > 0) {
    const shown = of.waiting.slice(0, MOST);
    const rest = of.waiting.length - shown.length;
    line.append(element("ul", {}, ...shown.map(branch), ...(rest > 0 ? [element("li", {}, `and ${rest} more`)] : [])));
  }
  return line;
}

/** @param {Branch} of @returns {number} */
function size(of) {
  return of.waiting.reduce((sum, waiting) => sum + size(waiting), 1);
}

/** @param {Thread} thread */
function label(thread) {
  return `${thread.thread}${thread.name === null ? "" : ` ${thread.name}`}`;
}

/** @param {any[]} lwps */
function buffers(lwps) {
  const columns = ["lwp", "name", "state", "mounted", "percent", "packets", "bytes", "lost", "overwritten"].filter((name) => lwps.some((lwp) => lwp[name] !== null && lwp[name] !== undefined));
  const heads = /** @type {Record<string, string>} */ ({ lwp: "LWP", mounted: "user thread", percent: "buffer in use, %" });
  byId("lwps").replaceChildren(table("LWPs", columns.map((name) => ({ name: heads[name] ?? name, number: !["name", "state"].includes(name) })),
    lwps.map((lwp) => columns.map((name) => ({ text: lwp[name] === null || lwp[name] === undefined ? "" : String(lwp[name]), number: !["name", "state"].includes(name) })))));
}

/** @param {unknown} error */
function fail(error) {
  byId("message-text").textContent = printable(/** @type {Error} */ (error).message);
  byId("message").hidden = false;
}

async function run() {
  for (;;) {
    const isPaused = /** @type {HTMLInputElement} */ (byId("pause")).checked || document.hidden;
    if (!isPaused) await look().catch(fail);
    await new Promise((resolve) => setTimeout(resolve, EACH_MS));
  }
}

const { token, ...rest } = fromFragment(location.hash);
api.useToken(token);
if (token) history.replaceState(null, "", `#${toFragment(rest)}`);
byId("message-close").addEventListener("click", () => { byId("message").hidden = true; });
byId("freeze").addEventListener("click", async () => {
  const button = /** @type {HTMLButtonElement} */ (byId("freeze"));
  button.disabled = true;
  button.textContent = "Freezing…";
  try {
    await api.freeze();
    location.assign("index.html");
  } catch (error) {
    fail(error);
  } finally {
    button.disabled = false;
    button.textContent = "Freeze";
  }
});
Object.defineProperty(window, "sigmund", { value: Object.freeze({ live: () => ({ looks, message: byId("message").hidden ? "" : byId("message-text").textContent }) }) });
run();
