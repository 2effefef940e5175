import assert from "node:assert/strict";
import { test } from "node:test";

import { Navigation, Shifted, fromFragment, inside, toFragment, zoomed } from "../../web/navigation.js";

test("a window stays inside of the trace and is never empty", () => {
  assert.deepEqual(inside({ from: -50, to: 50 }, 1000), { from: 0, to: 100 });
  assert.deepEqual(inside({ from: 950, to: 1050 }, 1000), { from: 900, to: 1000 });
  assert.deepEqual(inside({ from: -9, to: 9999 }, 1000), { from: 0, to: 1000 });
  const { from, to } = inside({ from: 500, to: 500 }, 1000);
  assert.ok(to > from && to - from <= 17);
});

test("zooming keeps the tick under the pointer where it is", () => {
  const { from, to } = zoomed({ from: 100, to: 300 }, 0.5, 150);
  assert.deepEqual([from, to], [125, 225]);
  assert.equal((150 - from) / (to - from), (150 - 100) / 200);
});

test("navigation is undone step by step, and moves at once are one step", () => {
  const page = new Navigation(10_000, () => {});
  page.go({ from: 1000, to: 2000 });
  page.lastMove = 0;
  page.pan(0.5);
  page.pan(0.5);
  assert.deepEqual(page.window, { from: 2000, to: 3000 });
  page.undo();
  assert.deepEqual(page.window, { from: 1000, to: 2000 });
  page.undo();
  assert.deepEqual(page.window, { from: 0, to: 10_000 });
  page.undo();
  assert.deepEqual(page.window, { from: 0, to: 10_000 });
});

test("what was undone is redone, until one goes elsewhere", () => {
  const page = new Navigation(10_000, () => {});
  const at = [];
  for (const from of [1000, 3000]) { page.lastMove = 0; page.go({ from, to: from + 500 }); at.push(page.window); }
  page.undo();
  page.undo();
  page.redo();
  assert.deepEqual(page.window, at[0]);
  page.redo();
  assert.deepEqual(page.window, at[1]);
  page.redo();
  assert.deepEqual(page.window, at[1]);
  page.undo();
  page.go({ from: 7000, to: 7500 });
  page.redo();
  assert.deepEqual(page.window, { from: 7000, to: 7500 });
});

test("panning stops at the ends without a change of zoom", () => {
  const page = new Navigation(1000, () => {});
  page.go({ from: 100, to: 300 });
  page.pan(-5);
  assert.deepEqual(page.window, { from: 0, to: 200 });
  page.pan(50);
  assert.deepEqual(page.window, { from: 800, to: 1000 });
});

test("the URL brings back what it was made of, and holds no token", () => {
  const kept = { from: 12, to: 34.5, focus: "thread:18446744073709551615", tick: 20, name: "a&b=c #d", panel: "sql",
    pins: "thread:1,cpu:0", toggled: "cpus,pid:7", heights: "cpu60", scroll: 1200.5, gutter: 300, panels: 200 };
  const fragment = toFragment(kept);
  assert.deepEqual(fromFragment(`#${fragment}`), kept);
  assert.equal(fromFragment("#token=abc").token, "abc");
  assert.equal(fromFragment("#from=x").from, undefined);
  assert.ok(!fragment.includes("token"));
});

test("a window keeps its length while it moves by fractions of ticks, and ends where the trace does", () => {
  let window = { from: 1000, to: 1100 };
  for (let move = 0; move < 1000; move++) {
    const by = 0.1 + 0.2 * (move % 3);
    window = inside({ from: window.from + by, to: window.from + by + (window.to - window.from) }, 100_000);
    assert.equal(window.to - window.from, 100);
  }
  assert.deepEqual(inside({ from: 99_990.5, to: 100_090.7 }, 100_000), { from: 99_900, to: 100_000 });
  assert.deepEqual(inside({ from: -50, to: 20 }, 100, -40), { from: -40, to: 30 });
});

test("the window of a trace that is compared is the same time, on its own clock and shifted", () => {
  const base = new Navigation(10_000, () => {});
  const other = new Shifted(base, 2, 8_000);
  assert.deepEqual(other.window, { from: 0, to: 5_000 });
  other.shift = -1_000;
  assert.deepEqual(base.extent, { from: -1_000, to: 15_000 });
  base.go(base.extent);
  assert.deepEqual(other.window, { from: 0, to: 8_000 });
  other.go({ from: 100, to: 200 });
  assert.deepEqual(base.window, { from: -800, to: -600 });
  assert.deepEqual(other.window, { from: 100, to: 200 });
  other.shift = 0;
  assert.deepEqual(base.extent, { from: 0, to: 16_000 });
});
