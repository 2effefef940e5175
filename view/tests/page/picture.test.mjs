import assert from "node:assert/strict";
import { test } from "node:test";

import { paint } from "../../web/picture.js";

const inks = { states: [11, 12, 13], order: [0, 1, 2], rare: [2, 1, 0], identity: (key) => key.length, line: 90, back: 91 };
const tile = (pixels) => ({ from: 0, to: 100, pixels, ids: ["a", "bb"], names: [], tracks: [], images: new Map() });
/** What a column has, from above. */
const column = (pixels, width, x) => Array.from({ length: pixels.length / width }, (_, y) => pixels[y * width + x]);

test("shares are stacked from below, and pixels outside of a row's life stay empty", () => {
  const pixels = new Uint32Array(40 * 4);
  // Pixels 2 to 31: three quarters of state 0, one of state 1.
  const track = { name: "state", form: "pixels", states: true, data: new Uint16Array([2, 30, 2, 0, 49151, 1, 16384]) };
  paint(pixels, tile(40), track, 4, inks);
  for (const x of [2, 31]) assert.deepEqual(column(pixels, 40, x), [12, 11, 11, 11]);
  for (const x of [1, 32]) assert.deepEqual(column(pixels, 40, x), [0, 0, 0, 0]);
});

test("a state with a sliver of a pixel has a line of its own", () => {
  const pixels = new Uint32Array(4);
  const track = { name: "state", form: "pixels", states: true, data: new Uint16Array([0, 1, 3, 0, 65533, 1, 1, 2, 1]) };
  paint(pixels, tile(1), track, 4, inks);
  assert.deepEqual([...pixels].sort(), [11, 11, 12, 13]);
});

test("who was there is one colour, several are a hatch, as tall as they were there", () => {
  const pixels = new Uint32Array(8 * 4);
  const track = { name: "thread", form: "pixels", states: false, data: new Uint32Array([0, 1, 65535, 1, 4, 4, 32768, 0xffffffff]) };
  paint(pixels, tile(8), track, 4, inks);
  assert.deepEqual(column(pixels, 8, 0), [2, 2, 2, 2]);
  assert.deepEqual(column(pixels, 8, 5), [0, 0, 90, 91]);
  assert.deepEqual(column(pixels, 8, 1), [0, 0, 0, 0]);
});

test("an interval has at least one pixel", () => {
  const pixels = new Uint32Array(10);
  const track = { name: "state", form: "intervals", states: true, data: new Float64Array([10, 10.5, 1, 50, 100, 2]) };
  paint(pixels, tile(10), track, 1, inks);
  assert.deepEqual([...pixels], [0, 12, 0, 0, 0, 13, 13, 13, 13, 13]);
});
