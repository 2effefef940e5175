import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, intervalAt } from "../../web/tiles.js";

/** An answer as the server writes it. */
function answer(header, body) {
  let text = JSON.stringify(header);
  while ((4 + text.length) % 8 !== 0) text += " ";
  const bytes = new Uint8Array(4 + text.length + body.byteLength);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(new TextEncoder().encode(text), 4);
  bytes.set(new Uint8Array(body.buffer), 4 + text.length);
  return bytes.buffer;
}

test("exact intervals are found by their tick, and what is between two is nothing", () => {
  const body = new Float64Array([10, 20, 2, 30, 40, 8]);
  const header = { from: 0, to: 100, pixels: 50, ids: [], names: [], rows: [{ key: "thread:1", tracks: [{ track: "state", form: "intervals", at: 0, n: 2 }] }] };
  const tile = decode(answer(header, body)).get("thread:1");
  assert.deepEqual([tile.from, tile.to, tile.pixels], [0, 100, 50]);
  const [track] = tile.tracks;
  assert.deepEqual(intervalAt(track, 10), { from: 10, to: 20, value: 2 });
  assert.deepEqual(intervalAt(track, 39), { from: 30, to: 40, value: 8 });
  for (const tick of [9, 20, 29, 40]) assert.equal(intervalAt(track, tick), null, `${tick}`);
});

test("pixels of states and of identities have the numbers that were sent", () => {
  const body = new Uint8Array(8 + 16);
  new Uint16Array(body.buffer, 0, 4).set([3, 2, 1, 2]);
  new Uint32Array(body.buffer, 8, 4).set([0, 5, 65535, 0xffffffff]);
  const header = { from: 0, to: 9, pixels: 9, ids: ["thread:5"], names: ["5 a"], rows: [{ key: "lwp:1", tracks: [
    { track: "state", form: "pixels", at: 0, n: 4 }, { track: "thread", form: "pixels", at: 8, n: 1 }] }] };
  const [states, threads] = decode(answer(header, body)).get("lwp:1").tracks;
  assert.deepEqual([...states.data], [3, 2, 1, 2]);
  assert.deepEqual([...threads.data], [0, 5, 65535, 0xffffffff]);
  assert.equal(intervalAt(states, 4), null);
});
