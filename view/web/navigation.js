// @ts-check
// The window that is shown: moved, zoomed, undone, and kept in the URL.

/** @typedef {{from: number, to: number}} Window */

/** Ticks that a window has at least. */
const SHORTEST = 16;
const KEPT = 200;

/** A window inside of a trace of so many ticks. @param {Window} window @param {number} ticks @returns {Window} */
export function inside({ from, to }, ticks) {
  const length = Math.min(Math.max(to - from, SHORTEST), Math.max(ticks, SHORTEST));
  const first = Math.min(Math.max(from, 0), Math.max(ticks, SHORTEST) - length);
  return { from: Math.floor(first), to: Math.ceil(first + length) };
}

/** Zoomed around a tick. @param {Window} window @param {number} factor @param {number} at @returns {Window} */
export function zoomed({ from, to }, factor, at) {
  return { from: at - (at - from) * factor, to: at + (to - at) * factor };
}

export class Navigation {
  /** @param {number} ticks @param {() => void} changed */
  constructor(ticks, changed) {
    this.ticks = ticks;
    this.changed = changed;
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
    const next = inside(window, this.ticks);
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
    const move = Math.min(Math.max(step, -this.window.from), this.ticks - this.window.to);
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

/** What the URL's fragment holds, apart from the token. Lists have commas: keys of pinned rows, groups that are not as at first,
 * heights of kinds of rows.
 * @typedef {{from?: number, to?: number, focus?: string, tick?: number, name?: string, state?: string, sort?: string, panel?: string,
 *   pins?: string, toggled?: string, heights?: string, scroll?: number, gutter?: number, panels?: number}} Kept */

/** @param {Kept} kept */
export function toFragment(kept) {
  const pairs = Object.entries(kept).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
}

/** @param {string} fragment @returns {Kept & {token?: string}} */
export function fromFragment(fragment) {
  const found = Object.fromEntries(new URLSearchParams(fragment.replace(/^#/, "")));
  /** @param {string | undefined} text */
  const number = (text) => (text !== undefined && Number.isFinite(Number(text)) ? Number(text) : undefined);
  return { ...found, from: number(found.from), to: number(found.to), tick: number(found.tick), scroll: number(found.scroll), gutter: number(found.gutter), panels: number(found.panels) };
}
