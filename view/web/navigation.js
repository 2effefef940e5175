// @ts-check
// The window that is shown: moved, zoomed, undone, and kept in the URL.

/** @typedef {{from: number, to: number}} Window */

/** Ticks that a window has at least. */
const SHORTEST = 16;
const KEPT = 200;

/** A window inside of a trace of so many ticks, the first of which is `begin`. @param {Window} window @param {number} ticks @param {number} [begin] @returns {Window} */
export function inside({ from, to }, ticks, begin = 0) {
  // Whole ticks, and of the same length wherever it is: a sum of fractions may be a little more.
  const length = Math.round(Math.min(Math.max(to - from, SHORTEST), Math.max(ticks, SHORTEST)));
  const first = Math.min(Math.max(from, begin), begin + Math.max(ticks, SHORTEST) - length);
  return { from: Math.floor(first), to: Math.floor(first) + length };
}

/** Zoomed around a tick. @param {Window} window @param {number} factor @param {number} at @returns {Window} */
export function zoomed({ from, to }, factor, at) {
  return { from: at - (at - from) * factor, to: at + (to - at) * factor };
}

export class Navigation {
  /** @param {number} ticks @param {() => void} changed */
  constructor(ticks, changed) {
    this.changed = changed;
    /** What can be shown: the trace, and what it is compared with. @type {Window} */
    this.extent = { from: 0, to: ticks };
    /** @type {Window} */
    this.window = inside({ from: 0, to: ticks }, ticks);
    /** @type {Window[]} */
    this.past = [];
    /** What was undone; the last one is redone first. @type {Window[]} */
    this.future = [];
    this.lastMove = 0;
  }

  /** Shows another window. Moves that follow each other at once are undone as one. @param {Window} window */
  go(window) {
    const { from, to } = this.extent;
    const next = inside(window, to - from, from);
    if (next.from === this.window.from && next.to === this.window.to) return;
    const now = Date.now();
    if (now - this.lastMove > 500) {
      this.past.push(this.window);
      if (this.past.length > KEPT) this.past.shift();
    }
    this.lastMove = now;
    this.future = [];
    this.window = next;
    this.changed();
  }

  undo() {
    this.step(this.past, this.future);
  }

  redo() {
    this.step(this.future, this.past);
  }

  /** @param {Window[]} from @param {Window[]} to */
  step(from, to) {
    const next = from.pop();
    if (!next) return;
    to.push(this.window);
    this.window = next;
    this.lastMove = 0;
    this.changed();
  }

  /** @param {number} share of the window */
  pan(share) {
    const step = (this.window.to - this.window.from) * share;
    // Without a change of length at the ends.
    const move = Math.min(Math.max(step, this.extent.from - this.window.from), this.extent.to - this.window.to);
    this.go({ from: this.window.from + move, to: this.window.to + move });
  }

  /** @param {number} factor @param {number} [at] */
  zoom(factor, at = (this.window.from + this.window.to) / 2) {
    this.go(zoomed(this.window, factor, at));
  }

  /** Shows an interval with room around it. @param {number} from @param {number} to */
  show(from, to) {
    const room = Math.max((to - from) * 0.15, SHORTEST / 2);
    this.go({ from: from - room, to: to + room });
  }
}

/** The window of a navigation, in the ticks of another trace that is compared: shifted, and with a clock of its own. */
export class Shifted {
  /** @param {Navigation} base @param {number} ratio ticks of the base for one of this trace @param {number} ticks that this trace has */
  constructor(base, ratio, ticks) {
    this.base = base;
    this.ratio = ratio;
    this.first = base.extent;
    this.ticks = ticks;
    this.by = 0;
  }

  /** Where this trace begins, in ticks of the base. */
  get shift() {
    return this.by;
  }

  set shift(shift) {
    this.by = shift;
    this.base.extent = { from: Math.min(this.first.from, shift), to: Math.ceil(Math.max(this.first.to, shift + this.ticks * this.ratio)) };
  }

  /** @param {number} tick of the base */
  own(tick) {
    return (tick - this.by) / this.ratio;
  }

  /** @param {number} tick of this trace */
  common(tick) {
    return tick * this.ratio + this.by;
  }

  /** Whole ticks. @returns {Window} */
  get window() {
    return { from: Math.floor(this.own(this.base.window.from)), to: Math.ceil(this.own(this.base.window.to)) };
  }

  /** @returns {Window} */
  get extent() {
    return { from: this.own(this.base.extent.from), to: this.own(this.base.extent.to) };
  }

  /** @param {Window} window */
  go({ from, to }) {
    this.base.go({ from: this.common(from), to: this.common(to) });
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    this.base.show(this.common(from), this.common(to));
  }

  /** @param {number} factor @param {number} at */
  zoom(factor, at) {
    this.base.zoom(factor, this.common(at));
  }

  /** @param {number} share */
  pan(share) {
    this.base.pan(share);
  }
}

/** What the URL's fragment holds, apart from the token. Lists have commas: keys of pinned rows, groups that are not as at first,
 * heights of kinds of rows.
 * @typedef {{from?: number, to?: number, focus?: string, tick?: number, name?: string, state?: string, sort?: string, panel?: string,
 *   pins?: string, toggled?: string, heights?: string, scroll?: number, gutter?: number, panels?: number,
 *   of?: string, shift?: number, pinsB?: string, toggledB?: string, scrollB?: number}} Kept */

const NUMBERS = ["from", "to", "tick", "scroll", "gutter", "panels", "shift", "scrollB"];

/** @param {Kept} kept */
export function toFragment(kept) {
  const pairs = Object.entries(kept).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
}

/** @param {string} fragment @returns {Kept & {token?: string}} */
export function fromFragment(fragment) {
  /** @type {Record<string, any>} */
  const found = Object.fromEntries(new URLSearchParams(fragment.replace(/^#/, "")));
  for (const name of NUMBERS) {
    if (name in found) found[name] = Number(found[name]);
    if (!Number.isFinite(found[name])) delete found[name];
  }
  return found;
}
