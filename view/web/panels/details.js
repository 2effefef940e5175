// @ts-check
// What is pointed at: the interval of the focused row, who had its CPU, and its wakeups.

import { instant, length, percent, printable } from "../format.js";
import { stateColour } from "../palette.js";
import { element, note, table } from "./table.js";

/** @param {HTMLElement} panel @param {import("../timeline.js").Timeline} timeline @param {AbortSignal} signal */
export async function details(panel, timeline, signal) {
  const { row, tick } = timeline.focus;
  if (!row) { panel.replaceChildren(note("Click a row: what it did there, who had its CPU, who woke it.")); return; }
  const hz = timeline.trace.tick_hz;
  const at = tick ?? (timeline.navigation.window.from + timeline.navigation.window.to) / 2;
  const answer = await timeline.source.ask("at", { key: row.key, tick: at }, signal);
  const parts = [element("h2", {}, printable(`${row.kind} ${answer.label} at ${instant(at, 1, hz)}`))];
  if (answer.intervals.length === 0) parts.push(note("Nothing is known of it at this instant: it did not exist, or nobody was there."));
  for (const interval of answer.intervals) {
    const facts = [
      [interval.track, interval.label ?? interval.value],
      ["from", instant(interval.from, 1, hz)], ["length", length(interval.to - interval.from, hz)],
      ["LWP", interval.lwp], ["CPU", interval.cpu],
      ["blocked for", interval.blocked_for], ["object", interval.blocked_on],
      ["ended by", interval.end_reason],
    ].filter(([, value]) => value !== null && value !== undefined);
    const swatch = interval.track === "state" ? stateColour(interval.value) : undefined;
    parts.push(table(`${interval.track}`, facts.map(([name]) => ({ name })), [facts.map(([, value], place) =>
      ({ text: String(value), swatch: place === 0 ? swatch : undefined }))],
      () => timeline.navigation.show(interval.from, interval.to)));
    if (interval.blocked_on && row.kind === "thread") {
      const found = await timeline.source.ask("locks", { key: row.key, from: interval.from, to: interval.to, limit: 20 }, signal);
      const locks = found.locks.filter((/** @type {any} */ lock) => lock.object === interval.blocked_on);
      if (locks.length > 0) {
        parts.push(table("The lock", [{ name: "lock" }, { name: "held by" }, { name: "waited", number: true }, { name: "then held for", number: true }, { name: "requested in" }],
          locks.map((/** @type {any} */ lock) => [
            { text: `${lock.kind} ${lock.object}` }, { text: lock.holder ?? "not known" },
            { text: lock.wait === null ? "" : length(lock.wait, hz), number: true }, { text: lock.hold === null ? "" : length(lock.hold, hz), number: true },
            { text: lock.call_site ?? "" },
          ]), (place) => { if (locks[place].holder) timeline.focusKey(locks[place].holder); }));
      }
    }
    if (interval.had_cpu?.length) {
      const whole = interval.to - interval.from;
      const isReady = interval.value === "ready" || interval.value === "new";
      parts.push(note(isReady ? "Meanwhile the LWPs of its process carried" : `Meanwhile ${interval.had_cpu[0].cpu ?? "the CPUs in whose run queues it was"} had`));
      parts.push(table("Who had it", [{ name: "who" }, { name: "time", number: true }, { name: "share", number: true }],
        interval.had_cpu.map((/** @type {any} */ who) => [
          { text: `${who.key.split(":")[0]} ${who.label}` },
          { text: length(who.ticks, hz), number: true }, { text: percent(who.ticks / whole), number: true },
        ]), (place) => timeline.focusKey(interval.had_cpu[place].key)));
    }
  }
  const wakeups = timeline.focus.life?.wakeups ?? [];
  if (wakeups.length > 0) {
    parts.push(note("Wakeups in this window, of it and by it"));
    parts.push(table("Wakeups", [{ name: "at" }, { name: "who was woken" }, { name: "by" }, { name: "from" }, { name: "latency", number: true }],
      wakeups.slice(0, 200).map((/** @type {any} */ wakeup) => [
        { text: instant(wakeup.at, 1, hz) }, { text: wakeup.of ?? "" }, { text: wakeup.by ?? wakeup.context ?? "" },
        { text: `${wakeup.level}${wakeup.context ? `, ${wakeup.context}` : ""}` },
        { text: wakeup.latency === null ? "" : length(wakeup.latency, hz), number: true },
      ]), (place) => timeline.jump(wakeups[place].at)));
  }
  panel.replaceChildren(...parts);
  const first = answer.intervals[0];
  if (first) timeline.page.speak(`${answer.label}: ${first.label ?? first.value}, ${length(first.to - first.from, hz)}`);
}
