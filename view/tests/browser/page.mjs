// The page in a real browser: `node page.mjs URL FOLDER`. It does what a hand would, checks what became of it, and leaves
// pictures in FOLDER. Exit status 1, and the reason, when something is not as promised.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { launch } from "./cdp.mjs";

const [url, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const { browser, page } = await launch();
const state = () => page.evaluate("window.sigmund.state()");
const settled = async () => {
  // The picture of the window, and the panel about it.
  await page.until("window.sigmund.state().drawn.length === window.sigmund.state().rows.length");
  await new Promise((resolve) => setTimeout(resolve, 350));
  await page.until("window.sigmund.state().asking === 0");
};
const length = (window) => window.to - window.from;
const text = (selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);
const passed = [];
const step = async (name, work) => {
  try {
    await work();
    passed.push(name);
  } catch (error) {
    error.message = `${name}: ${error.message}`;
    throw error;
  }
};

try {
  await page.open(url);
  await page.until("window.sigmund && window.sigmund.state().firstPictureMs !== undefined");
  await settled();
  const whole = await state();
  const [left, top, width] = await page.evaluate("(() => { const r = document.getElementById('canvas').getBoundingClientRect(); return [r.left, r.top, r.width]; })()");
  const address = await page.evaluate("location.href");

  await step("the token is in no address", async () => {
    assert.ok(!address.includes("token"), address);
  });
  await step("rows of all levels are drawn", async () => {
    for (const kind of ["cpu:", "lwp:", "thread:"]) assert.ok(whole.drawn.some((key) => key.startsWith(kind)), kind);
  });
  await page.screenshot(join(folder, "light.png"));

  await step("w and s zoom, a and d move, u undoes", async () => {
    await page.press("w");
    const near = await state();
    assert.ok(Math.abs(length(near) / length(whole) - 0.6) < 0.01, JSON.stringify(near));
    await page.press("d");
    const right = await state();
    assert.ok(right.from > near.from && Math.abs(length(right) - length(near)) <= 2);
    await page.press("a");
    await page.press("s");
    assert.ok(length(await state()) > length(near));
    await page.press("u");
    await settled();
    assert.deepEqual([(await state()).from, (await state()).to], [whole.from, whole.to]);
  });

  await step("what was undone is redone, by a key and by Ctrl and Y", async () => {
    await page.press("w");
    await settled();
    const near = await state();
    for (const [key, modifiers] of [["U", ["Shift"]], ["y", ["Control"]], ["Backspace", ["Shift"]]]) {
      await page.press("u");
      assert.equal(length(await state()), length(whole));
      await page.press(key, modifiers);
      assert.deepEqual([(await state()).from, (await state()).to], [near.from, near.to], key);
    }
    await page.press("u");
    await settled();
  });

  await step("arrows move and go through rows", async () => {
    await page.press("w");
    const before = await state();
    await page.press("ArrowRight");
    assert.ok((await state()).from > before.from);
    await page.press("ArrowDown");
    assert.equal((await state()).group, "cpus", "the head of a group is a row, too");
    await page.press("ArrowDown");
    const first = (await state()).focus;
    await page.press("ArrowDown");
    const second = (await state()).focus;
    assert.ok(first && second && first !== second);
    await page.press("ArrowUp");
    assert.equal((await state()).focus, first);
    await page.press("0");
    await page.press("Escape");
  });

  await step("Ctrl and the wheel zoom at the pointer, Shift moves, the wheel alone scrolls", async () => {
    await settled();
    await page.wheel(left + width / 4, top + 60, 0, -200, ["Control"]);
    await settled();
    const near = await state();
    const at = (window) => window.from + length(window) / 4;
    assert.ok(length(near) < length(whole));
    assert.ok(Math.abs(at(near) - at(whole)) < length(whole) / 200, "the tick under the pointer stays");
    await page.wheel(left + width / 4, top + 60, 0, 200, ["Shift"]);
    await settled();
    assert.ok((await state()).from > near.from);
    const rows = (await state()).rows;
    await page.wheel(left + width / 4, top + 60, 0, 200);
    await settled();
    assert.notDeepEqual((await state()).rows, rows);
    await page.wheel(left + width / 4, top + 60, 0, -9999);
    await page.press("0");
    await settled();
  });

  // A user thread's row: from here on the focused one.
  const thread = whole.rows.find((key) => key.startsWith("thread:"));
  const place = async (key) => page.evaluate(`(() => { const r = document.getElementById("row-${key.replace(":", "-")}").getBoundingClientRect(); return r.top + Math.min(r.height / 2, 10); })()`);

  await step("a click focuses a row and an interval, which is spoken", async () => {
    await page.click(left + width / 2, await place(thread));
    await settled();
    const now = await state();
    assert.equal(now.focus, thread);
    assert.ok(now.tick > 0 && now.life > 0, JSON.stringify(now));
    await page.until("window.sigmund.state().spoken !== ''");
    await page.until("/thread .* at /.test(document.getElementById('panel').innerText)");
    const selected = await page.evaluate("document.querySelectorAll('[role=row][aria-selected=true]').length");
    assert.equal(selected, 1);
  });

  await step("f zooms to the interval, and , and . go to its neighbours", async () => {
    await page.press("f");
    await settled();
    const near = await state();
    assert.ok(length(near) < length(whole) || near.tick !== null);
    await page.press(".");
    await settled();
    const next = await state();
    assert.ok(next.tick > near.tick, `${next.tick} ${near.tick}`);
    await page.press(",");
    await settled();
    assert.ok((await state()).tick < next.tick);
    await page.press("0");
    await settled();
  });

  await step("Shift and drag select an interval, whose numbers are the server's", async () => {
    const y = await place(thread);
    await page.drag(left + width * 0.3, y, left + width * 0.6, y, ["Shift"]);
    await page.until("document.querySelector('#panel table') && window.sigmund.state().panel === 'selection'");
    await settled();
    const { range } = await state();
    assert.ok(range && range.to > range.from);
    const asked = await page.evaluate(`fetch("api/selection?from=${range.from}&to=${range.to}&keys=${thread}", { headers: { Authorization: "Bearer " + sessionStorage.getItem("sigmund-token") } }).then((r) => r.json())`);
    const shown = await text("#panel");
    assert.ok(asked.states.length > 0);
    for (const { state, ticks } of asked.states) assert.ok(shown.includes(state) && shown.includes(String(ticks)), `${state} ${ticks}: ${shown}`);
    assert.ok(shown.includes(asked.command), shown);
  });

  await step("m marks it, and the marks are counted", async () => {
    await page.press("m");
    await settled();
    assert.equal((await state()).marks.length, 1);
    assert.match(await text("#panel"), /1 marks?:/);
  });

  await step("p pins a row above the others, and unpins it", async () => {
    await page.press("p");
    await settled();
    assert.deepEqual((await state()).pinned, [thread]);
    await page.press("p");
    assert.deepEqual((await state()).pinned, []);
  });

  await step("Escape clears what was selected, marked and focused", async () => {
    await page.press("Escape");
    const { focus, range, marks } = await state();
    assert.deepEqual([focus, range, marks], ["", null, []]);
  });

  await step("the listing, measures, SQL and the tree answer", async () => {
    for (const [name, pattern] of [["listing", /sched_switch|USER_/], ["measures", /active/], ["tree", /created|\d/]]) {
      await page.evaluate(`document.getElementById("tab-${name}").click()`);
      await page.until(`${pattern}.test(document.getElementById("panel").innerText)`);
    }
    await page.evaluate("document.getElementById('tab-sql').click()");
    await page.until("document.querySelector('#panel textarea')");
    await page.evaluate("document.querySelector('#panel textarea').focus(); document.querySelector('#panel textarea').value = 'SELECT ts_tick, thread FROM active LIMIT 3'");
    await page.press("Enter", ["Control"]);
    await page.until("document.querySelectorAll('#panel tbody tr').length === 3");
    assert.equal((await state()).ticks, 3, "each row with a ts_tick is a mark");
    await page.evaluate("document.querySelector('#panel textarea').value = 'DROP TABLE events'");
    await page.press("Enter", ["Control"]);
    await page.until("/only read/.test(document.getElementById('panel').innerText)");
    await page.evaluate("document.activeElement.blur()");
  });

  await step("the listing goes on at both ends, and keeps so many rows", async () => {
    await page.evaluate("document.getElementById('tab-listing').click()");
    const rows = () => page.evaluate("[...document.querySelectorAll('#events tbody tr')].map((line) => line.cells[0].innerText + line.innerText)");
    const scroll = async (share) => {
      await page.evaluate(`(() => { const p = document.getElementById("panel"); p.scrollTop = ${share} * p.scrollHeight; })()`);
      await settled();
    };
    await page.until("document.querySelectorAll('#events tbody tr').length >= 200");
    const first = (await rows())[0];
    for (let turn = 0; turn < 8; turn++) await scroll(1);
    const later = await rows();
    assert.ok(later.length > 200 && later.length <= 800 && !later.includes(first), `${later.length}`);
    for (let turn = 0; turn < 12 && (await rows())[0] !== first; turn++) await scroll(0);
    assert.equal((await rows())[0], first);
  });

  await step("the tree plots how many live threads a subtree has", async () => {
    await page.evaluate("document.getElementById('tab-tree').click()");
    await page.until("/at most \\d+ at once/.test(document.querySelector('#living')?.innerText)");
    const asked = await page.evaluate("fetch('api/living', { headers: { Authorization: 'Bearer ' + sessionStorage.getItem('sigmund-token') } }).then((r) => r.json())");
    const shown = (await text("#living")).replaceAll("\u202f", "");
    assert.ok(shown.includes(`${asked.threads} user threads`) && shown.includes(`at most ${asked.most} at once`), shown);
    await page.evaluate("document.querySelector('#panel [role=treeitem][aria-expanded] button').click()");
    await page.until("/and what it created/.test(document.querySelector('#living').innerText)");
  });

  await step("rows are made taller and lower by keys and by their borders, and names wider", async () => {
    await page.click(left + width / 2, await place(thread));
    await settled();
    const before = (await state()).heights.thread;
    await page.press("]");
    assert.ok((await state()).heights.thread > before);
    await page.press("[");
    await page.press("[");
    assert.ok((await state()).heights.thread < before);
    const [x, y] = await page.evaluate("(() => { const r = document.querySelector('#row-cpu-0 .handle').getBoundingClientRect(); return [r.left + 20, r.top + 2]; })()");
    await page.drag(x, y, x, y + 20);
    await settled();
    assert.equal((await state()).heights.cpu, whole.heights.cpu + 20);
    await page.evaluate("document.getElementById('gutter-splitter').focus()");
    await page.press("ArrowRight");
    assert.equal(await page.evaluate("document.getElementById('rows').offsetWidth"), left + 20);
    await page.press("ArrowLeft");
    await page.drag(x, y + 20, x, y);
    await page.evaluate("document.activeElement.blur()");
    await page.click(left + width / 2, await place(thread));
    await page.press("]");
    await page.press("Escape");
    await settled();
  });

  await step("near enough, a process has the length of its ready queue", async () => {
    for (let turn = 0; turn < 14 && !(await state()).queues.some((id) => id.startsWith("pid:")); turn++) {
      await page.press("w");
      await settled();
    }
    assert.ok((await state()).queues.some((id) => id.startsWith("pid:")), JSON.stringify((await state()).queues));
    await page.press("0");
    await settled();
  });

  await step("the latency from one event to another is a distribution, and a bar leads to its slowest", async () => {
    await page.evaluate("document.getElementById('tab-latency').click()");
    await page.until("document.querySelectorAll('#panel input').length === 3");
    await page.evaluate("(() => { const [from, to] = document.querySelectorAll('#panel input'); from.value = 'sched_waking'; from.dispatchEvent(new Event('change')); })()");
    await page.until("document.querySelectorAll('#panel input').length === 3 && document.querySelector('#panel input').value !== ''");
    await page.evaluate("(() => { const [from, to] = document.querySelectorAll('#panel input'); to.value = 'sched_switch'; to.dispatchEvent(new Event('change')); })()");
    await page.until("document.querySelector('#panel .bars button') && /--reactivity/.test(document.getElementById('panel').innerText)");
    await page.evaluate("[...document.querySelectorAll('#panel .bars button')].at(-1).click()");
    await settled();
    const now = await state();
    assert.ok(now.range && length(now) < length(whole), JSON.stringify(now));
    await page.until("/^(thread|lwp):/.test(window.sigmund.state().focus)");
    await page.press("Escape");
    // Its row was pinned if it was far away, and scrolled to otherwise.
    await page.evaluate("document.querySelectorAll('.row.pinned .pin').forEach((button) => button.click()); document.getElementById('scroll').scrollTop = 0");
    await page.press("0");
    await settled();
  });

  await step("a critical path is drawn", async () => {
    await page.click(left + width / 2, await place(thread));
    await page.evaluate("document.getElementById('tab-measures').click()");
    await page.until("document.querySelector('#panel select')");
    await page.evaluate("(() => { const s = document.querySelector('#panel select'); s.value = 'critical-path'; s.dispatchEvent(new Event('change')); })()");
    await page.until("/--critical-path/.test(document.getElementById('panel').innerText)");
    await page.evaluate("(() => { const i = document.querySelector('#panel input[placeholder=\"worst N\"]'); i.value = '1'; i.dispatchEvent(new Event('change')); })()");
    await page.until("window.sigmund.state().chain > 0");
    await settled();
    await page.screenshot(join(folder, "critical-path.png"));
    await page.evaluate("(() => { const s = document.querySelector('#panel select'); s.value = 'states'; s.dispatchEvent(new Event('change')); })()");
    await page.until("/--states/.test(document.getElementById('panel').innerText) && window.sigmund.state().chain === 0");
    await page.press("Escape");
    await page.press("0");
    await settled();
  });

  await step("a group is opened and closed by the keyboard", async () => {
    await page.evaluate("document.activeElement.blur()");
    await page.press("ArrowDown");
    assert.equal((await state()).group, "cpus");
    const rows = (await state()).rows;
    await page.press("Enter");
    await settled();
    assert.ok(!(await state()).rows.includes(rows[0]));
    await page.press("Enter");
    await settled();
    assert.deepEqual((await state()).rows, rows);
    await page.press("Escape");
  });

  await step("/ searches, and what is found is focused", async () => {
    await page.press("/");
    await page.until("document.getElementById('search').open");
    await page.evaluate(`document.getElementById("search-text").value = ${JSON.stringify(thread.split(":")[1])}; document.getElementById("search-text").dispatchEvent(new Event("input"))`);
    await page.until("document.querySelector('#search-results button')");
    await page.press("Enter");
    await page.until("!document.getElementById('search').open");
    await settled();
    assert.ok((await state()).focus.startsWith("thread:"));
  });

  await step("? shows the keys", async () => {
    await page.press("?");
    await page.until("document.getElementById('help').open && document.querySelectorAll('#help-table tr').length > 15");
    await page.press("Escape");
    await page.until("!document.getElementById('help').open");
  });

  await step("rows are filtered by name and sorted by the time in a state", async () => {
    await page.evaluate("(() => { const s = document.getElementById('filter-sort'); s.value = 'active'; s.dispatchEvent(new Event('change')); })()");
    await settled();
    const sorted = (await state()).rows.filter((key) => key.startsWith("thread:"));
    const busy = await page.evaluate("fetch('api/rows?kind=thread&sort=active&limit=1', { headers: { Authorization: 'Bearer ' + sessionStorage.getItem('sigmund-token') } }).then((r) => r.json())");
    assert.equal(sorted[0], busy.rows[0].key);
    await page.evaluate("(() => { const s = document.getElementById('filter-sort'); s.value = 'number'; s.dispatchEvent(new Event('change')); })()");
    await settled();
  });

  await step("rows come back when a filter that fits none is cleared", async () => {
    const before = (await state()).rows;
    const filter = async (name) => {
      await page.evaluate(`(() => { const f = document.getElementById("filter-name"); f.value = ${JSON.stringify(name)}; f.dispatchEvent(new Event("change")); })()`);
      await settled();
    };
    await filter("no such name");
    assert.ok((await state()).rows.every((key) => key.startsWith("cpu:")));
    await filter("");
    assert.deepEqual((await state()).rows, before);
  });

  await step("the URL brings the view back", async () => {
    await page.press("w");
    await page.press("w");
    await page.click(left + width / 2, await place(thread));
    await page.press("p");
    await page.press("]");
    await page.evaluate("document.getElementById('group-cpus').click()");
    await page.wheel(left + width / 4, top + 160, 0, 120);
    await settled();
    await page.press("a");
    await settled();
    const before = await state();
    assert.ok(before.scroll > 0 && !before.open.includes("cpus"));
    const href = await page.evaluate("location.href");
    assert.match(href, /from=/);
    await page.evaluate("location.reload()");
    await page.until("window.sigmund && window.sigmund.state().firstPictureMs !== undefined");
    await settled();
    const after = await state();
    assert.deepEqual([after.from, after.to], [before.from, before.to]);
    for (const name of ["focus", "pinned", "open", "heights", "scroll"]) assert.deepEqual(after[name], before[name], name);
    // A pin of another trace is named, and the others stay.
    await page.evaluate(`location.hash = location.hash.slice(1).replace(/pins=[^&]*/, (pins) => pins + ",xx,thread:987654321")`);
    await page.until("/ has no xx, no thread:987654321$/.test(window.sigmund.state().message)");
    await settled();
    assert.deepEqual((await state()).pinned, before.pinned);
    await page.evaluate("document.getElementById('message-close').click()");
    await page.press("p");
    await page.wheel(left + width / 4, top + 160, 0, -9999);
    await settled();
    await page.evaluate("document.getElementById('group-cpus').click()");
  });

  await step("dark is dark, and nothing moves or breaks with forced colours and less motion", async () => {
    await page.press("Escape");
    await page.press("0");
    await page.media({ "prefers-color-scheme": "dark", "prefers-reduced-motion": "reduce" });
    await settled();
    await page.screenshot(join(folder, "dark.png"));
    const back = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    assert.equal(back, "rgb(20, 24, 29)");
    await page.media({ "forced-colors": "active" });
    await settled();
    await page.media({});
    await settled();
  });

  await step("every input has a name, and ids are not used twice", async () => {
    const nameless = await page.evaluate("[...document.querySelectorAll('button, input, select, textarea, [role=treegrid], canvas:not([aria-hidden])')].filter((e) => !(e.getAttribute('aria-label') || e.labels?.length || e.innerText?.trim() || e.closest('[aria-label]'))).map((e) => e.outerHTML)");
    assert.deepEqual(nameless, []);
    const twice = await page.evaluate("(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.filter((id, at) => ids.indexOf(id) !== at); })()");
    assert.deepEqual(twice, []);
  });

  await step("frames while panning", async () => {
    await page.press("w");
    await settled();
    for (let at = 0; at < 20; at++) await page.press(at % 2 ? "a" : "d");
    await settled();
  });

  await step("no error in the console, and no violation of the policy", async () => {
    // The refused query is an answer with status 403, which browsers write to the console.
    const complaints = page.complaints.filter((text) => !/status of 403.*\/api\/sql/.test(text));
    assert.deepEqual(complaints, []);
  });
  const { frames, firstPictureMs } = await state();
  console.log(JSON.stringify({ passed, frames, firstPictureMs: whole.firstPictureMs, afterReloadMs: firstPictureMs }));
} catch (error) {
  await page.screenshot(join(folder, "failed.png")).catch(() => {});
  console.error(error.message, "\npassed:", passed.join("; "), "\ncomplaints:", page.complaints, "\nstate:", await state().catch(() => null));
  process.exitCode = 1;
} finally {
  await browser.close();
}
