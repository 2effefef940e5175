// @ts-check
// Intervals that were marked: their lengths, and their number.

import { counted, instant, length } from "../format.js";
import { note, table } from "./table.js";

/** @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline */
export async function marks(panel, timeline) {
  const hz = timeline.trace.tick_hz;
  const { marks } = timeline.focus;
  if (marks.length === 0) { panel.replaceChildren(note("m marks the selected interval, or the focused one.")); return; }
  const lengths = marks.map((mark) => mark.to - mark.from);
  const sum = lengths.reduce((a, b) => a + b, 0);
  panel.replaceChildren(
    note(`${counted(marks.length, "mark")}: ${length(sum, hz)} in all, ${length(sum / marks.length, hz)} on average, ${length(Math.max(...lengths), hz)} the longest`),
    table("Marks", [{ name: "row" }, { name: "from" }, { name: "length", number: true }], marks.map((mark) => [
      { text: mark.name }, { text: instant(mark.from, 1, hz) }, { text: length(mark.to - mark.from, hz), number: true },
    ]), (place) => timeline.navigation.show(marks[place].from, marks[place].to)));
}
