// @ts-check
// A lane as a picture: many pixels at once, written as numbers. Drawn once, and stretched while the window moves.

/** @typedef {import("./tiles.js").Tile} Tile */
/** @typedef {import("./tiles.js").Track} Track */
/** Colours as pixels of ImageData. `states` by index; `order` of states from below, `rare` as each gets a line of its own.
 * @typedef {{states: number[], order: number[], rare: number[], identity: (key: string) => number, line: number, back: number}} Inks */

const MIXED = 0xffffffff;
const OPAQUE = 0xff000000;
/** Pixels side by side for which a call of `fill` costs less than writing each. */
const FILLED = 24;

/** A colour as a pixel of ImageData: little-endian, as all machines are that browsers run on. @param {[number, number, number]} rgb */
export function pixelOf([red, green, blue]) {
  return (OPAQUE | (blue << 16) | (green << 8) | red) >>> 0;
}

/** @param {Tile} tile @param {Track} track @param {number} height @param {Inks} inks @returns {OffscreenCanvas} */
export function picture(tile, track, height, inks) {
  const canvas = spare.get(`${tile.pixels} ${height}`)?.pop() ?? new OffscreenCanvas(tile.pixels, height);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const bytes = 4 * tile.pixels * height;
  if (painted.byteLength < bytes) painted = new ArrayBuffer(bytes);
  const pixels = new Uint32Array(painted, 0, bytes / 4);
  pixels.fill(0);
  paint(pixels, tile, track, height, inks);
  context.putImageData(new ImageData(new Uint8ClampedArray(painted, 0, bytes), tile.pixels, height), 0, 0);
  return canvas;
}

/** Canvases of pictures that are not needed any more, by size: making one costs as much as painting it. @type {Map<string, OffscreenCanvas[]>} */
const spare = new Map();
const MOST_SPARE = 64;
const MOST_SIZES = 8;
/** The pixels of the picture that is painted: all pictures are painted there. */
let painted = new ArrayBuffer(0);

/** Gives back the canvas of a picture that nobody draws any more. @param {import("./tiles.js").Picture} picture */
export function release({ image, isKept }) {
  if (isKept) return;
  const size = `${image.width} ${image.height}`;
  const canvases = spare.get(size) ?? [];
  if (canvases.length < MOST_SPARE) canvases.push(image);
  // The size used last is last: windows of another width leave some that are not used again.
  spare.delete(size);
  spare.set(size, canvases);
  for (const other of spare.keys()) {
    if (spare.size <= MOST_SIZES) break;
    spare.delete(other);
  }
}

/** Paints a lane into `tile.pixels` × `height` pixels, which are empty. @param {Uint32Array} pixels @param {Tile} tile @param {Track} track
 * @param {number} height @param {Inks} inks */
export function paint(pixels, tile, track, height, inks) {
  if (track.form === "intervals") intervals(pixels, tile, track, height, inks);
  else if (track.states) shares(pixels, tile, track, height, inks);
  else identities(pixels, tile, track, height, inks);
}

/** Pixels side by side. @param {Uint32Array} pixels @param {number} at @param {number} count @param {number} colour */
function run(pixels, at, count, colour) {
  if (count > FILLED) { pixels.fill(colour, at, at + count); return; }
  for (let end = at + count; at < end; at++) pixels[at] = colour;
}

/** @param {Uint32Array} pixels @param {Tile} tile @param {Track} track @param {number} height @param {Inks} inks */
function intervals(pixels, tile, track, height, inks) {
  const { data } = track;
  const scale = tile.pixels / (tile.to - tile.from);
  for (let at = 0; at < data.length; at += 3) {
    const first = Math.max(0, Math.floor((data[at] - tile.from) * scale));
    const end = Math.min(tile.pixels, Math.max(Math.ceil((data[at + 1] - tile.from) * scale), first + 1));
    const value = data[at + 2];
    const pixel = track.states ? inks.states[value] ?? inks.back : inks.identity(tile.ids[value] ?? "");
    for (let y = 0; y < height; y++) run(pixels, y * tile.pixels + first, end - first, pixel);
  }
}

/** @param {Uint32Array} pixels @param {Tile} tile @param {Track} track @param {number} height @param {Inks} inks */
function shares(pixels, tile, track, height, inks) {
  const { data } = track;
  const { states: colours, order, rare } = inks;
  const share = new Float64Array(colours.length);
  /** Lines that each state has. */
  const lines = new Int32Array(colours.length);
  const column = new Uint32Array(height);
  for (let at = 0; at < data.length;) {
    const first = data[at], count = data[at + 1], k = data[at + 2];
    share.fill(0);
    for (let pair = 0; pair < k; pair++) share[data[at + 3 + 2 * pair]] = data[at + 4 + 2 * pair] / 65535;
    at += 3 + 2 * k;
    column.fill(0);
    let bottom = height, missing = false;
    for (const state of order) {
      if (share[state] === 0) continue;
      const top = bottom - share[state] * height;
      const begin = Math.max(0, Math.round(top)), end = Math.max(0, Math.round(bottom));
      for (let y = begin; y < end; y++) column[y] = colours[state];
      lines[state] = end - begin;
      missing ||= end <= begin;
      bottom = top;
    }
    // A state with any time in the pixel has a line of its own, which takes it from one that has several.
    if (missing) {
      for (const state of rare) {
        if (share[state] === 0 || lines[state] > 0) continue;
        const place = roomiest(column);
        if (place >= 0) column[place] = colours[state];
      }
    }
    for (let y = 0; y < height; y++) {
      if (column[y] !== 0) run(pixels, y * tile.pixels + first, count, column[y]);
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

/** @param {Uint32Array} pixels @param {Tile} tile @param {Track} track @param {number} height @param {Inks} inks */
function identities(pixels, tile, track, height, { identity, line, back }) {
  const { data } = track;
  /** @type {Map<number, number>} */
  const colours = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const first = data[at], count = data[at + 1], who = data[at + 3];
    const tall = Math.max(1, Math.round((data[at + 2] / 65535) * height));
    let pixel = line;
    if (who !== MIXED) {
      pixel = colours.get(who) ?? identity(tile.ids[who] ?? "");
      colours.set(who, pixel);
    }
    for (let y = height - tall; y < height; y++) run(pixels, y * tile.pixels + first, count, pixel);
    if (who !== MIXED) continue;
    // Several: a light hatch.
    for (let y = height - tall; y < height; y++) {
      for (let x = first; x < first + count; x++) if ((x + y) % 4 === 0) pixels[y * tile.pixels + x] = back;
    }
  }
}
