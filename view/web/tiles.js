// @ts-check
// What the server sends of rows: decoded, kept while it is useful, asked for when it is not there.

import { isAbort } from "./api.js";
import { release } from "./picture.js";

/** A lane of a row in a window.
 * @typedef {{name: string, form: "intervals" | "pixels", states: boolean, data: Float64Array | Uint16Array | Uint32Array}} Track */
/** @typedef {{from: number, to: number, pixels: number, ids: string[], names: string[], tracks: Track[], images: Map<string, Picture>, before?: Map<string, Picture>,
 *   isWhole?: boolean}} Tile */
/** A lane that was drawn, and what of the trace it shows; `isKept` by a tile of the whole trace.
 * @typedef {{image: OffscreenCanvas, from: number, to: number, isKept: boolean}} Picture */

/** Decodes a binary answer. @param {ArrayBuffer} buffer @returns {Map<string, Tile>} */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const base = 4 + length;
  /** @type {Map<string, Tile>} */
  const tiles = new Map();
  for (const row of header.rows) {
    const tracks = row.tracks.map((/** @type {any} */ { track, form, at, n }) => {
      const states = track === "state";
      const data = form === "intervals" ? new Float64Array(buffer, base + at, 3 * n)
        : states ? new Uint16Array(buffer, base + at, n) : new Uint32Array(buffer, base + at, 4 * n);
      return { name: track, form, states, data };
    });
    tiles.set(row.key, { from: header.from, to: header.to, pixels: header.pixels, ids: header.ids, names: header.names,
      tracks, images: new Map() });
  }
  return tiles;
}

/** The interval of a lane at a tick: exact ones only. @param {Track} track @param {number} tick */
export function intervalAt(track, tick) {
  if (track.form !== "intervals") return null;
  const data = track.data;
  let low = 0, high = data.length / 3;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data[3 * middle + 1] <= tick) low = middle + 1; else high = middle;
  }
  return low < data.length / 3 && data[3 * low] <= tick
    ? { from: data[3 * low], to: data[3 * low + 1], value: data[3 * low + 2] } : null;
}

/** Intervals of a lane that overlap a window: the first, and the one after the last. @param {Track} track @param {{from: number, to: number}} window
 * @returns {[number, number]} */
export function overlapping({ data }, { from, to }) {
  const search = (/** @type {(at: number) => boolean} */ isBefore) => {
    let low = 0, high = data.length / 3;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(3 * middle)) low = middle + 1; else high = middle;
    }
    return low;
  };
  return [search((at) => data[at + 1] <= from), search((at) => data[at] < to)];
}

/** As many intervals of a lane are drawn as boxes; more are a picture, which has to have the window's own pixels. */
export const FEW = 600;
const MOST_KEPT = 1500;
const MOST_ASKED = 200;
const MOST_PIXELS = 8192;
/** Of the window's length: how near to the end of a tile the next one is asked for. */
const MARGIN = 0.3;
const RETRY_MS = 1000;
/** Between two questions while the window is zoomed: each makes the pictures of the one before useless, and those are stretched
 * meanwhile. */
const APART_MS = 80;

export class Tiles {
  /** @param {number} ticks @param {import("./api.js").Source} source @param {() => void} arrived @param {(error: Error) => void} failed */
  constructor(ticks, source, arrived, failed) {
    this.ticks = ticks;
    this.source = source;
    this.arrived = arrived;
    this.failed = failed;
    /** @type {Map<string, Tile>} */
    this.tiles = new Map();
    /** Tiles of the whole trace: what is drawn where no other is known yet. @type {Map<string, Tile>} */
    this.whole = new Map();
    /** @type {{controller: AbortController, from: number, to: number, scale: number, keys: Set<string>} | null} */
    this.running = null;
    this.notBefore = 0;
    /** The last question. */
    this.last = { at: 0, scale: 0 };
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.later = undefined;
  }

  /** @param {string} key */
  get(key) {
    return this.tiles.get(key);
  }

  /** @param {string} key */
  wide(key) {
    return this.whole.get(key);
  }

  clearImages() {
    for (const tile of [...this.tiles.values(), ...this.whole.values()]) {
      tile.images.clear();
      tile.before?.clear();
    }
  }

  /** Asks for what is missing: three times the window, in the window's own pixels.
   * @param {string[]} keys @param {{from: number, to: number}} window @param {number} width */
  need(keys, window, width) {
    const length = window.to - window.from, scale = length / width;
    const reaches = (/** @type {{from: number, to: number}} */ { from, to }, /** @type {number} */ margin) =>
      from <= Math.max(window.from - margin, 0) && to >= Math.min(window.to + margin, this.ticks);
    const isSharp = (/** @type {Tile} */ tile) => Math.abs((tile.to - tile.from) / tile.pixels / scale - 1) < 1e-6;
    const isBoxes = (/** @type {Tile} */ tile) => tile.tracks.every((track) => {
      if (track.form !== "intervals") return false;
      const [first, end] = overlapping(track, window);
      return end - first <= FEW;
    });
    const missing = keys.filter((key) => {
      const tile = this.tiles.get(key);
      return !tile || !reaches(tile, MARGIN * length) || !(isBoxes(tile) || isSharp(tile));
    });
    if (missing.length === 0 || Date.now() < this.notBefore) return;
    const { running } = this;
    // One that will do is waited for: panning would else end each before it arrives.
    if (running && running.scale === scale && reaches(running, 0) && missing.every((key) => running.keys.has(key))) return;
    const now = performance.now(), wait = this.last.at + APART_MS - now;
    if (wait > 0 && this.last.scale !== scale && missing.every((key) => this.tiles.has(key) || this.whole.has(key))) {
      this.later ??= setTimeout(() => { this.later = undefined; this.arrived(); }, wait);
      return;
    }
    this.last = { at: now, scale };
    running?.controller.abort();
    const asked = missing.slice(0, MOST_ASKED);
    const sides = 3 * width <= MOST_PIXELS ? 1 : 0;
    const [from, to, pixels] = [window.from - sides * length, window.to + sides * length, Math.min((1 + 2 * sides) * width, MOST_PIXELS)];
    const own = { controller: new AbortController(), from, to, scale, keys: new Set(asked) };
    this.running = own;
    this.source.tiles({ from, to, pixels, keys: asked }, own.controller.signal).then((buffer) => {
      for (const [key, tile] of decode(buffer)) {
        // Until its own pictures are drawn.
        const last = this.tiles.get(key);
        if (last) {
          for (const [lane, image] of last.before ?? []) if (last.images.has(lane)) release(image);
          tile.before = new Map([...(last.before ?? []), ...last.images]);
        }
        // The last used are last.
        this.tiles.delete(key);
        this.tiles.set(key, tile);
        tile.isWhole = tile.from <= 0 && tile.to >= this.ticks;
        if (tile.isWhole) this.whole.set(key, tile);
      }
      for (const kept of [this.tiles, this.whole]) {
        for (const key of kept.keys()) {
          if (kept.size <= MOST_KEPT) break;
          kept.delete(key);
        }
      }
      if (this.running === own) this.running = null;
      this.arrived();
    }, (error) => {
      if (this.running === own) this.running = null;
      if (isAbort(error)) return;
      this.failed(error);
      this.notBefore = Date.now() + RETRY_MS;
      setTimeout(this.arrived, RETRY_MS);
    });
  }
}
