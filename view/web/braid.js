// @ts-check
// Draws rows: lanes of states and of who was there, the way of the focused thread, its wakeups and spans.

import { identityColour, identityRgb, ink, ofState, rareOrder, stackOrder, stateColour, stateRgb } from "./palette.js";
import { printable } from "./format.js";
import { HEIGHTS, SPAN_HEIGHT, lanes } from "./heights.js";
import { gaps, hatch } from "./losses.js";
import { picture, pixelOf, release } from "./picture.js";
import { FEW, overlapping } from "./tiles.js";

/** @typedef {import("./tiles.js").Tile} Tile */
/** @typedef {import("./tiles.js").Track} Track */
/** @typedef {{from: number, to: number}} Window */
/** @typedef {import("./heights.js").Lane} Lane */
/** Boxes narrower than this have no letter or name. */
const LETTER = 9;
/** Of a frame: how long pictures are built in it. The others are built in the frames after it, and older ones are drawn meanwhile. */
const BUILDING_MS = 4;

export class Braid {
  /** @param {CanvasRenderingContext2D} context @param {any} trace */
  constructor(context, trace) {
    this.context = context;
    this.trace = trace;
    /** When building of pictures ends in this frame. */
    this.deadline = 0;
    /** Pictures that this frame had no time for. */
    this.unbuilt = 0;
    this.ink = ink();
    this.hatch = hatch(this.ink.dim);
    this.inks = inksOf(trace, this.ink);
  }

  recolour() {
    this.ink = ink();
    this.hatch = hatch(this.ink.dim);
    this.inks = inksOf(this.trace, this.ink);
  }

  /** @param {string} kind @param {number} value */
  stateName(kind, value) {
    return (kind === "lwp" ? this.trace.lwp_states : this.trace.thread_states)[value] ?? "unknown";
  }

  /** @param {{placed: import("./rows.js").Placed[], scroll: number, pinnedHeight: number, window: Window, width: number, height: number,
   *   tile: (key: string) => Tile | undefined, wide: (key: string) => Tile | undefined, focus: any}} scene
   * @returns {boolean} whether all pictures were built; otherwise another frame is needed */
  draw(scene) {
    const { context, ink } = this;
    const { placed, scroll, pinnedHeight, window, width, height, focus } = scene;
    [this.deadline, this.unbuilt] = [performance.now() + BUILDING_MS, 0];
    context.fillStyle = ink.back;
    context.fillRect(0, 0, width, height);
    /** @type {Map<string, number>} */
    const tops = new Map();
    for (const isPinned of [false, true]) {
      context.save();
      if (!isPinned && pinnedHeight > 0) {
        context.beginPath();
        context.rect(0, pinnedHeight, width, height);
        context.clip();
      }
      for (const place of placed) {
        if (!!place.pinned !== isPinned) continue;
        const top = place.pinned ? place.top : place.top - scroll;
        if (place.group) { this.group(place.group, focus, top, place.height, window, width); continue; }
        if (!place.row) continue;
        if (!tops.has(place.row.key) || isPinned) tops.set(place.row.key, top);
        if (isPinned) { context.fillStyle = ink.panel; context.fillRect(0, top, width, place.height); }
        const tile = scene.tile(place.row.key), wide = scene.wide(place.row.key);
        // Never blank: where the tile has not arrived yet, the whole trace's is stretched.
        const isPart = !tile || tile.from > Math.max(window.from, 0) || tile.to < Math.min(window.to, this.trace.ticks);
        if (wide && isPart) this.row(place.row, wide, top, window, width);
        if (tile) this.row(place.row, tile, top, window, width);
        if (place.row.key === focus.key && !isPinned) this.spans(focus, top + HEIGHTS[place.row.kind], window, width);
        if (place.row.kind === "cpu") {
          this.interrupts(focus.interrupts.get(place.row.key), top, window, width);
          this.queue(focus.queues.get(place.row.key), top + place.height - 3, place.height / 2 - 6, window, width);
        }
        context.fillStyle = ink.line;
        context.fillRect(0, top + place.height - 1, width, 1);
      }
      context.restore();
    }
    this.disagreements(focus.disagreements, tops, window, width);
    this.losses(window, width, height);
    if (focus.life) this.way(focus, tops, window, width);
    this.chain(focus.chain, placed, tops, window, width);
    this.marks(focus, window, width, height);
    return this.unbuilt === 0;
  }

  /** The links of a critical path, each under the first of its rows that is visible.
   * @param {{from: number, to: number, keys: string[]}[]} chain @param {import("./rows.js").Placed[]} placed @param {Map<string, number>} tops
   * @param {Window} window @param {number} width */
  chain(chain, placed, tops, window, width) {
    const { context } = this;
    const scale = width / (window.to - window.from);
    const heights = new Map(placed.flatMap((place) => (place.row ? [[place.row.key, HEIGHTS[place.row.kind]]] : [])));
    context.strokeStyle = this.ink.text;
    context.lineWidth = 3;
    context.beginPath();
    /** @type {number | null} */
    let last = null;
    for (const link of chain) {
      const x = Math.max((link.from - window.from) * scale, -5), end = Math.min((link.to - window.from) * scale, width + 5);
      const key = link.keys.find((key) => tops.has(key));
      if (key === undefined || end < -5 || x > width + 5) { last = null; continue; }
      const y = (tops.get(key) ?? 0) + (heights.get(key) ?? 0) - 2;
      if (last === null) context.moveTo(x, y); else context.lineTo(x, last);
      context.lineTo(x, y);
      context.lineTo(Math.max(end, x), y);
      last = y;
    }
    context.stroke();
  }

  /** The head of a group; of a process, with the length of its ready queue.
   * @param {import("./rows.js").Group} group @param {any} focus @param {number} top @param {number} height @param {Window} window @param {number} width */
  group(group, focus, top, height, window, width) {
    this.context.fillStyle = this.ink.panel;
    this.context.fillRect(0, top, width, height);
    this.queue(focus.queues.get(group.id), top + height - 3, height - 6, window, width);
  }

  /** @param {import("./rows.js").Row} row @param {Tile} tile @param {number} top @param {Window} window @param {number} width */
  row(row, tile, top, window, width) {
    for (const track of tile.tracks) {
      const lane = lanes(row.kind).find((lane) => lane.name === track.name);
      if (!lane) continue;
      const [first, end] = track.form === "intervals" ? overlapping(track, window) : [0, Infinity];
      if (end - first <= FEW) {
        this.boxes(row.kind, tile, track, [first, end], top + lane.y, lane.height, window, width);
      } else {
        const found = this.image(row.kind, tile, track, lane);
        if (!found) continue;
        const { image, from: begin, to } = found;
        const scale = image.width / (to - begin);
        const from = (window.from - begin) * scale, length = (window.to - window.from) * scale;
        this.stretch(image, from, length, top + lane.y, width, lane.height);
      }
    }
  }

  /** Draws a part of a picture over the whole width; what is outside of the picture stays empty.
   * @param {OffscreenCanvas} image @param {number} from @param {number} length @param {number} y @param {number} width @param {number} height */
  stretch(image, from, length, y, width, height) {
    const first = Math.max(0, from), last = Math.min(image.width, from + length);
    if (last <= first) return;
    const scale = width / length;
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, first, 0, last - first, image.height, (first - from) * scale, y, (last - first) * scale, height);
  }

  /** The picture of a lane; the one of the tile before, if there is no time left in this frame.
   * @param {string} kind @param {Tile} tile @param {Track} track @param {Lane} lane @returns {import("./tiles.js").Picture | undefined} */
  image(kind, tile, track, lane) {
    const known = tile.images.get(track.name);
    if (known) return known;
    if (performance.now() > this.deadline) {
      this.unbuilt++;
      return tile.before?.get(track.name);
    }
    const image = picture(tile, track, lane.height, kind === "lwp" ? this.inks.lwp : this.inks.thread);
    const made = { image, from: tile.from, to: tile.to, isKept: tile.isWhole === true };
    tile.images.set(track.name, made);
    const before = tile.before?.get(track.name);
    if (before) release(before);
    tile.before?.delete(track.name);
    return made;
  }

  /** @param {CanvasRenderingContext2D} context @param {Track} track @param {string} kind @param {Tile} tile @param {number} value */
  fill(context, track, kind, tile, value) {
    if (!track.states) { context.fillStyle = identityColour(tile.ids[value] ?? ""); return null; }
    const state = this.stateName(kind, value);
    context.fillStyle = stateColour(state);
    return state;
  }

  /** @param {string} kind @param {Tile} tile @param {Track} track @param {[number, number]} range @param {number} y
   * @param {number} height @param {Window} window @param {number} width */
  boxes(kind, tile, track, range, y, height, window, width) {
    const { context } = this;
    const scale = width / (window.to - window.from);
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "middle";
    const data = track.data;
    for (let at = 3 * range[0]; at < 3 * range[1]; at += 3) {
      const x = Math.max((data[at] - window.from) * scale, -2);
      const end = Math.min((data[at + 1] - window.from) * scale, width + 2);
      // Neighbours of one colour are told apart by a gap.
      const wide = Math.max(end - x - (end - x > 3 ? 1 : 0), 1);
      const state = this.fill(context, track, kind, tile, data[at + 2]);
      context.fillRect(x, y, wide, height);
      if (state && ofState(state).hatch) { context.fillStyle = this.hatch; context.fillRect(x, y, wide, height); }
      if (wide < LETTER) continue;
      const name = state ? (wide > state.length * 6 + 6 ? state : ofState(state).letter) : printable(tile.names[data[at + 2]] ?? "");
      context.fillStyle = textOn(state ? stateColour(state) : "", this.ink.dark, state === null);
      this.text(name, Math.max(x, 0) + 3, y + height / 2 + 0.5, wide - (Math.max(x, 0) - x) - 5);
    }
  }

  /** A text cut to a width. @param {string} text @param {number} x @param {number} y @param {number} width */
  text(text, x, y, width) {
    const most = Math.floor(width / 5.6);
    if (most < 1) return;
    this.context.fillText(text.length > most ? (most > 2 ? `${text.slice(0, most - 1)}…` : text.slice(0, 1)) : text, x, y);
  }

  /** @param {any} focus @param {number} top @param {Window} window @param {number} width */
  spans(focus, top, window, width) {
    const { context, ink } = this;
    const scale = width / (window.to - window.from);
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const span of focus.spans) {
      if (span.to <= window.from || span.from >= window.to) continue;
      const x = Math.max((span.from - window.from) * scale, -2), end = Math.min((span.to - window.from) * scale, width + 2);
      const y = top + span.depth * SPAN_HEIGHT;
      context.fillStyle = identityColour(`span ${span.name}`);
      context.fillRect(x, y, Math.max(end - x - 1, 1), SPAN_HEIGHT - 2);
      if (end - x > LETTER) {
        context.fillStyle = ink.text;
        this.text(printable(span.name ?? "?"), Math.max(x, 0) + 3, y + SPAN_HEIGHT / 2 - 1, end - Math.max(x, 0) - 5);
      }
    }
  }

  /** @param {any[] | undefined} interrupts @param {number} top @param {Window} window @param {number} width */
  interrupts(interrupts, top, window, width) {
    if (!interrupts) return;
    const scale = width / (window.to - window.from);
    this.context.fillStyle = stateColour("interrupted");
    for (const { from, to } of interrupts) {
      this.context.fillRect((from - window.from) * scale, top + HEIGHTS.cpu - 4, Math.max((to - from) * scale, 1), 3);
    }
  }

  /** The length of a queue, as steps. @param {[number, number][] | undefined} points @param {number} bottom
   * @param {number} height @param {Window} window @param {number} width */
  queue(points, bottom, height, window, width) {
    if (!points || points.length === 0) return;
    const { context } = this;
    const scale = width / (window.to - window.from);
    const most = points.reduce((most, point) => Math.max(most, point[1]), 1);
    const y = (/** @type {number} */ value) => bottom - (value / most) * height;
    context.strokeStyle = this.ink.text;
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    context.beginPath();
    let last = points[0][1];
    context.moveTo(Math.max(0, (points[0][0] - window.from) * scale), y(last));
    for (const [at, value] of points) {
      const x = Math.max(0, (at - window.from) * scale);
      context.lineTo(x, y(last));
      context.lineTo(x, y(value));
      last = value;
    }
    context.lineTo(width, y(points[points.length - 1][1]));
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Where the probe and the kernel's switches have two CPUs for one event: on the rows of both.
   * @param {any[]} disagreements @param {Map<string, number>} tops @param {Window} window @param {number} width */
  disagreements(disagreements, tops, window, width) {
    const { context } = this;
    const scale = width / (window.to - window.from);
    context.fillStyle = this.ink.focus;
    context.font = "bold 13px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const { at, cpu, cpu_seen } of disagreements) {
      for (const top of [tops.get(cpu), tops.get(cpu_seen)]) if (top !== undefined) context.fillText("≠", (at - window.from) * scale - 4, top + HEIGHTS.cpu / 2);
    }
  }

  /** @param {Window} window @param {number} width @param {number} height */
  losses(window, width, height) {
    const scale = width / (window.to - window.from);
    this.context.fillStyle = this.hatch;
    for (const { from, to } of gaps(this.trace.losses)) {
      if (to < window.from || from > window.to) continue;
      this.context.fillRect((from - window.from) * scale, 0, Math.max((to - from) * scale, 2), height);
    }
  }

  /** The focused thread on the rows of the LWPs and CPUs that it was on, and its wakeups.
   * @param {any} focus @param {Map<string, number>} tops @param {Window} window @param {number} width */
  way(focus, tops, window, width) {
    const { context, ink } = this;
    const scale = width / (window.to - window.from);
    context.strokeStyle = ink.focus;
    context.lineWidth = 2;
    /** @type {[number, number] | null} */
    let last = null;
    const [, mounted] = lanes("lwp");
    for (const stay of focus.life.intervals) {
      const x = (stay.from - window.from) * scale, end = (stay.to - window.from) * scale;
      if (end < -10 || x > width + 10) { last = null; continue; }
      const cpu = tops.get(stay.cpu), lwp = stay.lwp === focus.key ? undefined : tops.get(stay.lwp);
      const isOnCpu = stay.state === "active" || stay.state === "running";
      if (isOnCpu && cpu !== undefined) {
        const lane = focus.key.startsWith("lwp") ? lanes("cpu")[0] : lanes("cpu")[1];
        const y = cpu + lane.y;
        context.strokeRect(x, y - 1, Math.max(end - x, 1), lane.height + 2);
        // From one CPU to the next one.
        if (last && last[1] !== y) {
          context.globalAlpha = 0.5;
          context.beginPath(); context.moveTo(last[0], last[1] + 7); context.lineTo(x, y + 7); context.stroke();
          context.globalAlpha = 1;
        }
        last = [end, y];
      }
      if (lwp !== undefined) {
        context.strokeRect(x, lwp + mounted.y - 1, Math.max(end - x, 1), mounted.height + 2);
      }
    }
    context.lineWidth = 1.5;
    context.strokeStyle = ink.accent;
    context.fillStyle = ink.accent;
    for (const wakeup of focus.life.wakeups) {
      const x = (wakeup.at - window.from) * scale;
      if (x < 0 || x > width) continue;
      const from = tops.get(wakeup.by) ?? tops.get(wakeup.by_lwp) ?? tops.get(wakeup.cpu), to = tops.get(wakeup.of);
      if (to === undefined) continue;
      const end = x + (wakeup.latency ?? 0) * scale;
      const y = to + 3, begin = from === undefined ? y - 12 : from + 10;
      // Instants of two clocks are known up to their bound: the arrow is as wide as that.
      const blur = (this.trace.clock_bound ?? 0) * scale;
      if (blur > 0.5) {
        context.globalAlpha = 0.2;
        context.fillRect(x - blur, Math.min(begin, y), 2 * blur, Math.abs(begin - y));
        context.globalAlpha = 1;
      }
      context.beginPath(); context.moveTo(x, begin); context.lineTo(x, y); context.lineTo(Math.max(end, x), y); context.stroke();
      const up = begin > y ? 1 : -1;
      context.beginPath(); context.moveTo(x, y); context.lineTo(x - 3, y + 5 * up); context.lineTo(x + 3, y + 5 * up); context.fill();
    }
  }

  /** @param {any} focus @param {Window} window @param {number} width @param {number} height */
  marks(focus, window, width, height) {
    const { context, ink } = this;
    const scale = width / (window.to - window.from);
    const x = (/** @type {number} */ tick) => (tick - window.from) * scale;
    if (focus.range) {
      context.fillStyle = ink.accent;
      context.globalAlpha = 0.15;
      context.fillRect(x(focus.range.from), 0, Math.max(x(focus.range.to) - x(focus.range.from), 1), height);
      context.globalAlpha = 1;
    }
    context.fillStyle = ink.accent;
    for (const at of focus.ticks) if (at >= window.from && at <= window.to) context.fillRect(Math.round(x(at)), 0, 1, height);
    context.fillStyle = ink.focus;
    for (const mark of focus.marks) {
      context.fillRect(Math.round(x(mark.from)), 0, 1, height);
      context.fillRect(Math.round(x(mark.to)), 0, 1, height);
    }
    if (focus.tick !== null) context.fillRect(Math.round(x(focus.tick)), 0, 1, height);
  }
}

/** @param {any} trace @param {ReturnType<typeof ink>} page */
function inksOf(trace, page) {
  /** @param {string[]} states @returns {import("./picture.js").Inks} */
  const of = (states) => {
    const order = stackOrder(states);
    return { states: states.map((state) => pixelOf(stateRgb(state))), order, rare: rareOrder(order), identity: (key) => pixelOf(identityRgb(key)),
      line: pixelOf(page.pixels.line), back: pixelOf(page.pixels.back) };
  };
  return { thread: of(trace.thread_states), lwp: of(trace.lwp_states) };
}

/** Black or white, whichever is easier to read. @param {string} colour @param {boolean} dark @param {boolean} isIdentity */
function textOn(colour, dark, isIdentity) {
  if (isIdentity) return dark ? "#f4f6f8" : "#10151b";
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#10151b" : "#ffffff";
}
