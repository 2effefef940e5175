// @ts-check
// What the URL holds of the page, and the way back.

import { byId } from "./document.js";
import * as heights from "./heights.js";

/** @typedef {import("./navigation.js").Kept} Kept */

const MOST_PINS = 60;
const style = () => document.documentElement.style;
/** A length that was set by hand. @param {string} name */
const pixels = (name) => (style().getPropertyValue(name) === "" ? undefined : parseFloat(style().getPropertyValue(name)));

/** @param {import("./main.js").Page} page @returns {Kept} */
export function keptOf(page) {
  const { navigation, active, comparison } = page;
  const { focus } = active;
  const { name, state, sort } = active.rows.filter;
  const [a, b] = page.timelines.map((timeline) => ({ pins: timeline.rows.pinned.map((row) => row.key).join(","),
    toggled: timeline.rows.groups.filter((group) => group.open !== group.first).map((group) => group.id).join(","), scroll: Math.round(timeline.scroll) || undefined }));
  return {
    ...navigation.window, of: active.letter === "B" ? "B" : undefined, shift: comparison?.navigation.shift || undefined, focus: focus.key || undefined, tick: focus.tick ?? undefined, name, state, sort: sort === "number" ? undefined : sort, panel: page.panelName,
    ...a, pinsB: b?.pins, toggledB: b?.toggled, scrollB: b?.scroll,
    heights: heights.toText(), gutter: pixels("--gutter"), panels: pixels("--panels"),
  };
}

/** What has to be there before the first picture. @param {import("./main.js").Page} page @param {Kept} kept */
export function restore(page, kept) {
  heights.fromText(kept.heights ?? "");
  resizeGutter(kept.gutter);
  if (kept.panels !== undefined) page.panes.resize(kept.panels);
  const words = (/** @type {string | undefined} */ text) => (text ?? "").split(",").filter((word) => word !== "");
  const [a, b] = page.timelines;
  /** @param {import("./timeline.js").Timeline} timeline @param {string[]} toggled @param {string[]} pins @param {number | undefined} scroll */
  const of = (timeline, toggled, pins, scroll) => {
    for (const group of timeline.rows.groups) timeline.rows.open(group, toggled.includes(group.id) ? !group.first : group.first);
    timeline.scrollWanted = scroll;
    timeline.lost = [];
    pin(timeline, pins.slice(0, MOST_PINS)).catch(page.fail);
  };
  of(a, words(kept.toggled), words(kept.pins), kept.scroll);
  if (b) of(b, words(kept.toggledB), words(kept.pinsB), kept.scrollB);
  page.comparison?.setShift(kept.shift ?? 0);
}

/** @param {import("./timeline.js").Timeline} timeline @param {string[]} keys */
async function pin(timeline, keys) {
  const rows = await Promise.all(keys.map((key) => find(timeline.source, key)));
  timeline.rows.pinned = rows.flatMap((row) => (row ? [row] : []));
  timeline.redraw();
  const missing = keys.filter((_, place) => !rows[place]);
  if (missing.length > 0) timeline.missing(missing);
}

/** A row by its key; undefined if the trace has none. @param {import("./api.js").Source} source @param {string} key @returns {Promise<import("./rows.js").Row | undefined>} */
export async function find(source, key) {
  return (await source.ask("rows", { key })).rows[0];
}

/** The width of the rows' names. @param {number | undefined} width */
export function resizeGutter(width) {
  if (width === undefined) { style().removeProperty("--gutter"); return; }
  const allowed = Math.min(Math.max(width, 60), innerWidth / 2);
  style().setProperty("--gutter", `${Math.round(allowed)}px`);
  byId("gutter-splitter").setAttribute("aria-valuenow", String(Math.round(allowed)));
}
