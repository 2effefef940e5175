// @ts-check
// What the URL holds of the page, and the way back.

import * as api from "./api.js";
import { byId } from "./document.js";
import * as heights from "./heights.js";

/** @typedef {import("./navigation.js").Kept} Kept */

const MOST_PINS = 60;
const style = () => document.documentElement.style;
/** A length that was set by hand. @param {string} name */
const pixels = (name) => (style().getPropertyValue(name) === "" ? undefined : parseFloat(style().getPropertyValue(name)));

/** @param {import("./main.js").Page} page @returns {Kept} */
export function keptOf(page) {
  const { focus, rows, navigation } = page;
  const { name, state, sort } = rows.filter;
  return {
    ...navigation.window, focus: focus.key || undefined, tick: focus.tick ?? undefined, name, state, sort: sort === "number" ? undefined : sort, panel: page.panelName,
    pins: rows.pinned.map((row) => row.key).join(","), toggled: rows.groups.filter((group) => group.open !== group.first).map((group) => group.id).join(","),
    heights: heights.toText(), scroll: Math.round(page.scroll) || undefined, gutter: pixels("--gutter"), panels: pixels("--panels"),
  };
}

/** What has to be there before the first picture. @param {import("./main.js").Page} page @param {Kept} kept */
export function restore(page, kept) {
  heights.fromText(kept.heights ?? "");
  resizeGutter(kept.gutter);
  if (kept.panels !== undefined) page.panes.resize(kept.panels);
  const toggled = (kept.toggled ?? "").split(",");
  for (const group of page.rows.groups) page.rows.open(group, toggled.includes(group.id) ? !group.first : group.first);
  page.scrollWanted = kept.scroll;
  pin(page, (kept.pins ?? "").split(",").filter((key) => key !== "").slice(0, MOST_PINS)).catch(page.fail);
}

/** @param {import("./main.js").Page} page @param {string[]} keys */
async function pin(page, keys) {
  const rows = await Promise.all(keys.map((key) => find(key)));
  page.rows.pinned = rows.flatMap((row) => (row ? [row] : []));
  page.redraw();
}

/** A row by its key. @param {string} key @returns {Promise<import("./rows.js").Row | undefined>} */
export async function find(key) {
  const [kind, number] = key.split(":");
  const answer = await api.ask("rows", { kind, name: number, limit: 200 });
  return answer.rows.find((/** @type {any} */ row) => row.key === key);
}

/** The width of the rows' names. @param {number | undefined} width */
export function resizeGutter(width) {
  if (width === undefined) { style().removeProperty("--gutter"); return; }
  const allowed = Math.min(Math.max(width, 60), innerWidth / 2);
  style().setProperty("--gutter", `${Math.round(allowed)}px`);
  byId("gutter-splitter").setAttribute("aria-valuenow", String(Math.round(allowed)));
}
