// @ts-check
// What the server sends of rows: decoded, kept while it is useful, asked for when it is not there.

import * as api from "./api.js";

/** A lane of a row in a window.
 * @typedef {{name: string, form: "intervals" | "pixels", states: boolean, data: Float64Array | Uint16Array | Uint32Array}} Track */
/** @typedef {{from: number, to: number, pixels: number, ids: string[], names: string[], tracks: Track[], images: Map<string, any>}} Tile */

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

const MOST_KEPT = 1500;
const MOST_ASKED = 200;

export class Tiles {
  /** @param {number} ticks @param {() => void} arrived @param {(error: Error) => void} failed */
  constructor(ticks, arrived, failed) {
    this.ticks = ticks;
    this.arrived = arrived;
    this.failed = failed;
    /** @type {Map<string, Tile>} */
    this.tiles = new Map();
    /** @type {AbortController | null} */
    this.running = null;
    this.wanted = "";
  }

  /** @param {string} key */
  get(key) {
    return this.tiles.get(key);
  }

  clear() {
    this.tiles.clear();
    this.wanted = "";
  }

  /** Asks for what is missing: three times the window. @param {string[]} keys @param {{from: number, to: number}} window @param {number} width */
  need(keys, window, width) {
    const length = window.to - window.from;
    const missing = keys.filter((key) => {
      const tile = this.tiles.get(key);
      if (!tile) return true;
      const covers = tile.from <= window.from && tile.to >= window.to;
      const ratio = ((tile.to - tile.from) / tile.pixels) / (length / width);
      const isExact = tile.tracks.length > 0 && tile.tracks.every((track) => track.form === "intervals");
      return !covers || (!isExact && (ratio > 1.01 || ratio < 0.4)) || (isExact && ratio < 0.02);
    });
    if (missing.length === 0) return;
    const asked = missing.slice(0, MOST_ASKED);
    const from = Math.max(0, Math.floor(window.from - length)), to = Math.min(this.ticks + 1, Math.ceil(window.to + length));
    const pixels = Math.min(8192, Math.max(1, Math.ceil((width * (to - from)) / length)));
    const name = `${window.from} ${window.to} ${width} ${asked.join()}`;
    if (name === this.wanted) return;
    this.running?.abort();
    this.wanted = name;
    const controller = new AbortController();
    this.running = controller;
    api.tiles({ from, to, pixels, keys: asked }, controller.signal).then((buffer) => {
      for (const [key, tile] of decode(buffer)) {
        // The last used are last.
        this.tiles.delete(key);
        this.tiles.set(key, tile);
      }
      for (const key of this.tiles.keys()) {
        if (this.tiles.size <= MOST_KEPT) break;
        this.tiles.delete(key);
      }
      if (this.running === controller) { this.running = null; this.wanted = ""; }
      this.arrived();
    }, (error) => {
      if (this.running === controller) this.running = null;
      if (!api.isAbort(error)) this.failed(error);
    });
  }
}
