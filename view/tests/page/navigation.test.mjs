import assert from "node:assert/strict";
import { test } from "node:test";

import { Navigation, fromFragment, inside, toFragment, zoomed } from "../../web/navigation.js";

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
