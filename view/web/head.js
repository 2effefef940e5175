// @ts-check
// The head of the page: the trace, filters of rows, search, and the keys.

import * as api from "./api.js";
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
    const { trace } = this.page;
    byId("title").textContent = printable(trace.name);
    byId("title").title = printable(trace.path);
    document.title = `${printable(trace.name)} · Sigmund`;
    const state = /** @type {HTMLSelectElement} */ (byId("filter-state")), sort = /** @type {HTMLSelectElement} */ (byId("filter-sort"));
    const names = [...new Set([...(trace.counts.threads ? trace.thread_states : []), ...trace.lwp_states])].filter((name) => name !== "exited");
    state.append(...names.map((name) => element("option", { value: name }, name)));
    sort.append(...names.map((name) => element("option", { value: name }, `time ${name}`)));
    const name = /** @type {HTMLInputElement} */ (byId("filter-name")), related = /** @type {HTMLInputElement} */ (byId("filter-with"));
    [name.value, state.value, sort.value] = [this.page.rows.filter.name, this.page.rows.filter.state, this.page.rows.filter.sort];
    const apply = () => {
      this.page.rows.setFilter({ name: name.value, state: state.value, sort: sort.value, with: related.checked ? this.page.focus.key : "" });
      byId("scroll").scrollTop = 0;
      this.page.moved();
    };
    for (const input of [name, state, sort, related]) input.addEventListener("change", apply);
    byId("filters").addEventListener("submit", (event) => { event.preventDefault(); apply(); });
    byId("undo").addEventListener("click", () => this.page.navigation.undo());
    byId("redo").addEventListener("click", () => this.page.navigation.redo());
    byId("whole").addEventListener("click", () => this.page.navigation.go({ from: 0, to: trace.ticks }));
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
    const answer = await api.ask("search", { text, limit: 20 });
    const entry = (/** @type {string} */ label, /** @type {() => void} */ go) => {
      const made = element("button", { type: "button", role: "option" }, printable(label));
      made.addEventListener("click", () => { dialog.close(); go(); });
      return made;
    };
    const hz = this.page.trace.tick_hz;
    const found = [
      ...answer.rows.map((/** @type {any} */ row) => entry(`${row.kind} ${row.label}`, () => this.page.focusKey(row.key))),
      ...answer.spans.map((/** @type {any} */ span) => entry(`span ${span.name} of ${span.key}, ${length(span.to - span.from, hz)}`, () => {
        this.page.focus.tick = span.from;
        this.page.focusKey(span.key);
        this.page.navigation.show(span.from, span.to);
      })),
      ...answer.events.map((/** @type {string} */ name) => entry(`event ${name}`, () => this.showEvents(name))),
    ];
    byId("search-results").replaceChildren(...(found.length ? found : [note("Nothing has this in its name.")]));
  }

  /** Marks the events of a name. @param {string} name */
  async showEvents(name) {
    const answer = await api.sql(`SELECT ts_tick FROM events WHERE name = '${name.replaceAll("'", "''")}' ORDER BY ts_tick LIMIT 10000`).catch(this.page.fail);
    if (!answer) return;
    const first = BigInt(answer.first_tick);
    this.page.mark(answer.rows.map((/** @type {any[]} */ row) => Number(BigInt(row[0]) - first)));
    if (this.page.focus.ticks.length > 0) this.page.jump(this.page.focus.ticks[0]);
  }
}
