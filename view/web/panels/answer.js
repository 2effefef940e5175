// @ts-check
// The answer of a measure as a table.

import { instant, length } from "../format.js";
import { note, table } from "./table.js";

/** Rows of an answer that are shown. */
const MOST = 1000;

/** @param {any} value @param {{kind: string}} column @param {number | null} hz */
export function cellText(value, column, hz) {
  if (value === null) return "";
  if (column.kind === "length") return length(Number(value), hz);
  if (column.kind === "instant") return instant(Number(value), 1, hz);
  return typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : String(value);
}

/** A table of an answer; a click on a row that has an instant jumps there. @param {string} name @param {any} answer @param {import("../timeline.js").Timeline} timeline
 * @returns {Node[]} */
export function answerTable(name, answer, timeline) {
  const hz = timeline.trace.tick_hz;
  const isNumber = (/** @type {any} */ column) => column.kind !== "text";
  const instants = answer.columns.findIndex((/** @type {any} */ column) => column.kind === "instant");
  return [
    ...(answer.rows.length === 0 ? [note("No rows: nothing of this kind happened here, or it was not recorded.")] : []),
    table(name, answer.columns.map((/** @type {any} */ column) => ({ name: column.name, about: column.about, number: isNumber(column) })),
      answer.rows.slice(0, MOST).map((/** @type {any[]} */ row) => row.map((value, place) => ({ text: cellText(value, answer.columns[place], hz), number: isNumber(answer.columns[place]) }))),
      instants < 0 ? null : (place) => timeline.jump(Number(answer.rows[place][instants]))),
    ...answer.notes.map(note),
  ];
}
