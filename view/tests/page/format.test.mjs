import assert from "node:assert/strict";
import { test } from "node:test";

import { axisStep, counted, instant, length, percent, printable } from "../../web/format.js";

test("lengths have a unit that suits them; ticks, if the rate of the clock is not known", () => {
  assert.equal(length(2_500_000, 2.5e9), "1 ms");
  assert.equal(length(12_340, 1e9), "12.34 µs");
  assert.equal(length(3, 1e9), "3 ns");
  assert.equal(length(90e9, 1e9), "90 s");
  assert.equal(length(0, 1e9), "0 ns");
  assert.equal(length(1_234_567, null), "1\u202f234\u202f567 ticks");
});

test("instants are as precise as the step between them", () => {
  assert.equal(instant(1_500_000, 100_000, 1e9), "1.5 ms");
  assert.equal(instant(1_500_000, 1_000_000, 1e9), "2 ms");
  assert.equal(instant(2_000_000_001, 1, 1e9), "2.000000001 s");
  assert.equal(instant(1234, 1, null), "1\u202f234");
});

test("an axis has steps of 1, 2 and 5", () => {
  assert.equal(axisStep(1e9, 10, 1e9), 1e8);
  assert.equal(axisStep(1.1e9, 10, 1e9), 2e8);
  assert.equal(axisStep(3e9, 10, 1e9), 5e8);
  assert.equal(axisStep(100, 10, null), 10);
});

test("a share that is not zero is not shown as zero", () => {
  assert.equal(percent(0.5), "50.00 %");
  assert.equal(percent(1e-9), "< 0.01 %");
  assert.equal(percent(0), "0.00 %");
});

test("one thing is one, and many are grouped", () => {
  assert.equal(counted(1, "LWP"), "1 LWP");
  assert.equal(counted(0, "LWP"), "0 LWPs");
  assert.equal(counted(12_345, "user thread"), "12\u202f345 user threads");
});

test("names cannot hide or reorder what is around them", () => {
  assert.equal(printable("a\u202eb"), "a\\u{202e}b");
  assert.equal(printable("<b>é 中"), "<b>é 中");
  assert.equal(printable("\u0007"), "\\u{7}");
});
