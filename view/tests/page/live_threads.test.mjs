import assert from "node:assert/strict";
import { test } from "node:test";

import { byState, waits } from "../../web/live_threads.js";

const thread = (number, held_by = null, state = "blocked") => ({ thread: number, name: null, state, lwp: null, waits_for: null, on: null, held_by });
const shape = ({ thread, waiting }) => [thread.thread, ...waiting.map(shape)];

test("a thread is under the one that it waits for", () => {
  const { roots, cycles } = waits([thread(1, 2), thread(2, 3), thread(3, null, "running"), thread(4, 3), thread(5, 99)]);
  assert.deepEqual(roots.map(shape), [[3, [2, [1]], [4]], [5]]);
  assert.deepEqual(cycles, []);
});

test("a cycle is found once, from wherever one comes to it", () => {
  const threads = [thread(9, 1), thread(1, 2), thread(2, 3), thread(3, 1), thread(7, 7)];
  const { roots, cycles } = waits(threads);
  assert.deepEqual(cycles.map((cycle) => cycle.map((of) => of.thread)), [[1, 2, 3], [7]]);
  // What waits for a thread of the cycle is under that.
  assert.deepEqual(roots.map(shape), [[1, [9]], [2], [3], [7]]);
});

test("states are counted, the most frequent first", () => {
  assert.deepEqual(byState([thread(1), thread(2, null, "running"), thread(3)]), [["blocked", 2], ["running", 1]]);
});
