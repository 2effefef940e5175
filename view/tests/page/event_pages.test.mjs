import assert from "node:assert/strict";
import { test } from "node:test";

import { EventPages } from "../../web/panels/event_pages.js";

/** A server with so many events, one at each tick. */
const server = (count, limit) => async ({ after, before }) => {
  const [from, to] = after === undefined
    ? [Math.max(0, place(before) - limit), Math.min(place(before), count)] : [Math.min(place(after), count), Math.min(place(after) + limit, count)];
  const rows = Array.from({ length: Math.max(to - from, 0) }, (_, row) => ({ at: from + row }));
  return { more: after === undefined ? from > 0 : to < count, first: rows.length ? `${from}:0` : null, last: rows.length ? `${to - 1}:1` : null, rows };
};
const place = (cursor) => { const [at, nth] = cursor.split(":").map(Number); return at + nth; };
const isConsecutive = (rows) => rows.every((row, at) => at === 0 || row.at === rows[at - 1].at + 1);

test("a listing goes to both ends from where it begins, and keeps only so many rows", async () => {
  const pages = new EventPages(server(1000, 100), 300);
  assert.equal(await pages.start(500), 100);
  for (let turn = 0; pages.moreAfter; turn++) {
    assert.ok(turn < 20 && await pages.later());
    assert.ok(pages.rows.length <= 300 && isConsecutive(pages.rows));
  }
  assert.equal(pages.rows.at(-1).at, 999);
  assert.ok(pages.moreBefore);
  for (let turn = 0; pages.moreBefore; turn++) {
    assert.ok(turn < 20 && await pages.earlier());
    assert.ok(pages.rows.length <= 300 && isConsecutive(pages.rows));
  }
  assert.equal(pages.rows[0].at, 0);
  assert.ok(pages.moreAfter);
});

test("a second question is not asked while one is under way, and an end has nothing after it", async () => {
  const pages = new EventPages(server(150, 100), 300);
  assert.equal(await pages.start(0), 0);
  assert.ok(!pages.moreBefore);
  assert.deepEqual(await Promise.all([pages.later(), pages.later()]), [true, false]);
  assert.deepEqual([pages.rows.length, pages.moreAfter], [150, false]);
});
