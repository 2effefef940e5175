// @ts-check
// The head of the page: the trace, filters of rows, search, and the keys.

import { byId } from "./document.js";
import { length, printable } from "./format.js";
import * as keys from "./keys.js";
import { element, note } from "./panels/table.js";

export class Head {
  /** @param {import("./main.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {number | undefined} */
    this.searching = undefined;
    this.fill();
  }

  fill() {
    const { trace } = this.page.timelines[0];
    const title = this.page.timelines.map(({ title }) => title).join(" · ");
    byId("title").textContent = title;
    byId("title").title = this.page.timelines.map(({ trace }) => printable(trace.path)).join("\n");
    document.title = `${title} · Sigmund`;
    const state = /** @type {HTMLSelectElement} */ (byId("filter-state")), sort = /** @type {HTMLSelectElement} */ (byId("filter-sort"));
    const names = [...new Set([...(trace.counts.threads ? trace.thread_states : []), ...trace.lwp_states])].filter((name) => name !== "exited");
    state.append(...names.map((name) => element("option", { value: name }, name)));
    sort.append(...names.map((name) => element("option", { value: name }, `time ${name}`)));
    const name = /** @type {HTMLInputElement} */ (byId("filter-name")), related = /** @type {HTMLInputElement} */ (byId("filter-with"));
    [name.value, state.value, sort.value] = [this.page.active.rows.filter.name, this.page.active.rows.filter.state, this.page.active.rows.filter.sort];
    const apply = () => {
      for (const timeline of this.page.timelines) {
        timeline.rows.setFilter({ name: name.value, state: state.value, sort: sort.value, with: related.checked ? timeline.focus.key : "" });
        timeline.scrollBar.scrollTop = 0;
      }
      this.page.moved();
    };
    for (const input of [name, state, sort, related]) input.addEventListener("change", apply);
    byId("filters").addEventListener("submit", (event) => { event.preventDefault(); apply(); });
    byId("undo").addEventListener("click", () => this.page.navigation.undo());
    byId("redo").addEventListener("click", () => this.page.navigation.redo());
    byId("whole").addEventListener("click", () => this.page.navigation.go(this.page.navigation.extent));
    byId("help-button").addEventListener("click", () => this.openHelp());
    byId("message-close").addEventListener("click", () => { byId("message").hidden = true; });
    keys.describe(byId("help-table"));
    const text = /** @type {HTMLInputElement} */ (byId("search-text"));
    text.addEventListener("input", () => { clearTimeout(this.searching); this.searching = setTimeout(() => this.find(text.value).catch(this.page.fail), 150); });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); /** @type {HTMLElement | null} */ (byId("search-results").querySelector("button"))?.click(); }
    });
  }

  openHelp() {
    /** @type {HTMLDialogElement} */ (byId("help")).showModal();
  }

  openSearch() {
    /** @type {HTMLDialogElement} */ (byId("search")).showModal();
    byId("search-text").focus();
  }

  /** @param {string} text */
  async find(text) {
    const dialog = /** @type {HTMLDialogElement} */ (byId("search"));
    if (text === "") { byId("search-results").replaceChildren(); return; }
    const timeline = this.page.active;
    const answer = await timeline.source.ask("search", { text, limit: 20 });
    const entry = (/** @type {string} */ label, /** @type {() => void} */ go) => {
      const made = element("button", { type: "button", role: "option" }, printable(label));
      made.addEventListener("click", () => { dialog.close(); go(); });
      return made;
    };
    const hz = timeline.trace.tick_hz;
    const found = [
      ...answer.rows.map((/** @type {any} */ row) => entry(`${row.kind} ${row.label}`, () => timeline.focusKey(row.key))),
      ...answer.spans.map((/** @type {any} */ span) => entry(`span ${span.name} of ${span.key}, ${length(span.to - span.from, hz)}`, () => {
        timeline.focus.tick = span.from;
        timeline.focusKey(span.key);
        timeline.navigation.show(span.from, span.to);
      })),
      ...answer.events.map((/** @type {string} */ name) => entry(`event ${name}`, () => this.showEvents(timeline, name))),
    ];
    byId("search-results").replaceChildren(...(found.length ? found : [note("Nothing has this in its name.")]));
  }

  /** Marks the events of a name. @param {import("./timeline.js").Timeline} timeline @param {string} name */
  async showEvents(timeline, name) {
    const answer = await timeline.source.sql(`SELECT ts_tick FROM events WHERE name = '${name.replaceAll("'", "''")}' ORDER BY ts_tick LIMIT 10000`).catch(this.page.fail);
    if (!answer) return;
    const first = BigInt(answer.first_tick);
    timeline.mark(answer.rows.map((/** @type {any[]} */ row) => Number(BigInt(row[0]) - first)));
    if (timeline.focus.ticks.length > 0) timeline.jump(timeline.focus.ticks[0]);
  }
}
