// @ts-check
// A lane as a picture: many pixels at once, written as numbers. Drawn once, and stretched while the window moves.

import { identityRgb, rareOrder, stateRgb } from "./palette.js";

/** @typedef {import("./tiles.js").Tile} Tile */
/** @typedef {import("./tiles.js").Track} Track */

const MIXED = 0xffffffff;
const OPAQUE = 0xff000000;

/** A colour as a pixel of ImageData: little-endian, as all machines are that browsers run on. @param {[number, number, number]} rgb */
function pixelOf([red, green, blue]) {
  return (OPAQUE | (blue << 16) | (green << 8) | red) >>> 0;
}

/** @param {Tile} tile @param {Track} track @param {number} height @param {string[]} states names, if it is a lane of states @param {number[]} order from below
 * @param {{back: [number, number, number], line: [number, number, number]}} ink @returns {OffscreenCanvas} */
export function picture(tile, track, height, states, order, ink) {
  const canvas = new OffscreenCanvas(tile.pixels, height);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(tile.pixels, height);
  const pixels = new Uint32Array(image.data.buffer);
  if (track.form === "intervals") intervals(pixels, tile, track, height, states);
  else if (track.states) shares(pixels, tile, track, height, states, order);
  else identities(pixels, tile, track, height, pixelOf(ink.line), pixelOf(ink.back));
  context.putImageData(image, 0, 0);
  return canvas;
}

/** @param {Uint32Array} pixels @param {Tile} tile @param {Track} track @param {number} height @param {string[]} states */
function intervals(pixels, tile, track, height, states) {
  const { data } = track;
  const scale = tile.pixels / (tile.to - tile.from);
  for (let at = 0; at < data.length; at += 3) {
    const first = Math.max(0, Math.floor((data[at] - tile.from) * scale));
    const end = Math.min(tile.pixels, Math.max(Math.ceil((data[at + 1] - tile.from) * scale), first + 1));
    const value = data[at + 2];
    const pixel = pixelOf(track.states ? stateRgb(states[value] ?? "unknown") : identityRgb(tile.ids[value] ?? ""));
    for (let y = 0; y < height; y++) pixels.fill(pixel, y * tile.pixels + first, y * tile.pixels + end);
  }
}

/** @param {Uint32Array} pixels @param {Tile} tile @param {Track} track @param {number} height @param {string[]} states @param {number[]} order */
function shares(pixels, tile, track, height, states, order) {
  const { data } = track;
  const colours = states.map((state) => pixelOf(stateRgb(state)));
  const rare = rareOrder(order);
  const share = new Float64Array(states.length);
  const column = new Uint32Array(height);
  for (let at = 0; at < data.length;) {
    const first = data[at], count = data[at + 1], k = data[at + 2];
    share.fill(0);
    for (let pair = 0; pair < k; pair++) share[data[at + 3 + 2 * pair]] = data[at + 4 + 2 * pair] / 65535;
    at += 3 + 2 * k;
    column.fill(0);
    let bottom = height;
    for (const state of order) {
      if (share[state] === 0) continue;
      const top = bottom - share[state] * height;
      column.fill(colours[state], Math.max(0, Math.round(top)), Math.max(0, Math.round(bottom)));
      bottom = top;
    }
    // A state with any time in the pixel has a line of its own, which takes it from one that has several.
    for (const state of rare) {
      if (share[state] === 0 || column.includes(colours[state])) continue;
      const place = roomiest(column);
      if (place >= 0) column[place] = colours[state];
    }
    for (let y = 0; y < height; y++) {
      if (column[y] !== 0) pixels.fill(column[y], y * tile.pixels + first, y * tile.pixels + first + count);
    }
  }
}

/** A line of the colour that has most lines. @param {Uint32Array} column */
function roomiest(column) {
  let best = -1, most = 0;
  for (let at = 0; at < column.length;) {
    let end = at;
    while (end < column.length && column[end] === column[at]) end++;
    if (end - at > most) [best, most] = [end - 1, end - at];
    at = end;
  }
  return best;
}

/** @param {Uint32Array} pixels @param {Tile} tile @param {Track} track @param {number} height @param {number} line @param {number} back */
function identities(pixels, tile, track, height, line, back) {
  const { data } = track;
  /** @type {Map<number, number>} */
  const colours = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const first = data[at], count = data[at + 1], who = data[at + 3];
    const tall = Math.max(1, Math.round((data[at + 2] / 65535) * height));
    let pixel = line;
    if (who !== MIXED) {
      pixel = colours.get(who) ?? pixelOf(identityRgb(tile.ids[who] ?? ""));
      colours.set(who, pixel);
    }
    for (let y = height - tall; y < height; y++) pixels.fill(pixel, y * tile.pixels + first, y * tile.pixels + first + count);
    if (who !== MIXED) continue;
    // Several: a light hatch.
    for (let y = height - tall; y < height; y++) {
      for (let x = first; x < first + count; x++) if ((x + y) % 4 === 0) pixels[y * tile.pixels + x] = back;
    }
  }
}
