// What a hand expects of the timeline beside the keys of page.mjs: `node hand.mjs URL FOLDER`. It prints what it copied, for the
// test to run.

import assert from "node:assert/strict";

import { begin } from "./harness.mjs";

const test = await begin();
const { page, state, settled, step, text, ask, place, box } = test;
const length = (window) => window.to - window.from;

await test.run(async () => {
  const whole = await state();
  const canvas = await box("#canvas");
  const thread = whole.rows.find((key) => key.startsWith("thread:"));
  const [life] = (await ask(`rows?kind=thread&name=${thread.split(":")[1]}&limit=200`)).rows.filter(({ key }) => key === thread);
  /** Where a share of its life is, while all is shown. */
  const x = (share) => canvas.left + (canvas.width * (life.from + ((life.to ?? whole.to) - life.from) * share)) / whole.to;
  const all = async () => { await page.press("Escape"); await page.press("0"); await settled(); };
  const panelButton = async (label) => {
    await page.evaluate("window.copiedText = undefined");
    await page.until(`(() => { const found = [...document.querySelectorAll("#panel button")].find((button) => button.innerText === ${JSON.stringify(label)}); found?.click(); return found; })() && true`);
    await page.until("window.copiedText !== undefined");
  };

  await step("two fingers zoom around the point between them", async () => {
    await page.pinch(canvas.left + canvas.width / 4, canvas.top + 60, 100, 300);
    await settled();
    const near = await state();
    assert.ok(Math.abs(length(near) / length(whole) - 1 / 3) < 0.05, `${length(near) / length(whole)}`);
    const at = (window) => window.from + length(window) / 4;
    assert.ok(Math.abs(at(near) - at(whole)) < length(whole) / 50, "the tick between them stays");
    await page.pinch(canvas.left + canvas.width / 4, canvas.top + 60, 300, 150);
    assert.ok(length(await state()) > 1.5 * length(near));
    assert.equal((await state()).focus, "", "no finger focused a row");
    await all();
  });

  await step("a drag moves the picture with the hand", async () => {
    await page.press("w");
    await page.press("w");
    await settled();
    const before = await state();
    await page.drag(canvas.left + 700, canvas.top + 60, canvas.left + 500, canvas.top + 60);
    await settled();
    const after = await state();
    assert.equal(length(after), length(before));
    const moved = (after.from - before.from) / length(before);
    assert.ok(Math.abs(moved - 200 / canvas.width) < 0.01, `${moved}`);
    await page.drag(canvas.left + 100, canvas.top + 60, canvas.left + 1100, canvas.top + 60);
    await page.drag(canvas.left + 100, canvas.top + 60, canvas.left + 1100, canvas.top + 60);
    assert.equal((await state()).from, 0, "not beyond the begin");
    await all();
  });

  await step("moves that follow each other are undone as one, and many after another", async () => {
    const windows = [];
    // What follows at once would be undone with what was before.
    const pause = () => new Promise((resolve) => setTimeout(resolve, 1500));
    await pause();
    for (let turn = 0; turn < 3; turn++) {
      windows.push(await state());
      await page.press("w");
      await pause();
    }
    for (const { from, to } of windows.reverse()) {
      await page.evaluate("document.getElementById('undo').click()");
      assert.deepEqual([(await state()).from, (await state()).to], [from, to]);
    }
    for (let turn = 0; turn < 3; turn++) await page.evaluate("document.getElementById('redo').click()");
    assert.ok(length(await state()) < length(whole) / 4);
    await all();
  });

  await step("a double click zooms to the interval", async () => {
    await page.click(x(0.5), await place(thread), 2);
    await settled();
    const [{ from, to }] = (await ask(`at?key=${thread}&tick=${(await state()).tick}`)).intervals;
    const now = await state();
    assert.ok(now.from <= from && now.to >= to && length(now) < 1.4 * (to - from) + 32, JSON.stringify({ from, to, now: [now.from, now.to] }));
    await all();
  });

  await step("the overview jumps, moves the window, and selects one", async () => {
    const map = await box("#minimap");
    const y = map.top + map.height / 2;
    await page.drag(map.left + map.width * 0.2, y, map.left + map.width * 0.4, y);
    await settled();
    const chosen = await state();
    assert.ok(Math.abs(chosen.from / whole.to - 0.2) < 0.01 && Math.abs(chosen.to / whole.to - 0.4) < 0.01);
    await page.drag(map.left + map.width * 0.3, y, map.left + map.width * 0.5, y);
    await settled();
    const moved = await state();
    assert.ok(Math.abs(moved.from / whole.to - 0.4) < 0.01 && Math.abs(length(moved) - length(chosen)) < 3);
    await page.click(map.left + map.width * 0.8, y);
    await settled();
    const jumped = await state();
    assert.ok(Math.abs((jumped.from + jumped.to) / 2 / whole.to - 0.8) < 0.01);
    await all();
  });

  await step("a tooltip names the row, the instant, the state and its length, with units", async () => {
    const y = await place(thread);
    await page.mouse("mouseMoved", x(0.5), y);
    await page.until("!document.getElementById('tip').hidden");
    const lines = (await text("#tip")).split("\n");
    const trace = await ask("trace");
    assert.ok(lines[0].startsWith(`thread ${thread.split(":")[1]}`), lines[0]);
    assert.match(lines[1], /^[\d.]+ (s|ms|µs|ns)$/);
    assert.ok(lines.slice(2).some((line) => trace.thread_states.some((state) => line.includes(state)) && /(s|ms|µs|ns|%)$/.test(line)), lines.join("; "));
    await page.mouse("mouseMoved", canvas.left + 40, canvas.top + 40);
    assert.match(await text("#tip"), /^CPU|^cpu/);
    await page.mouse("mouseMoved", 5, 5);
    await page.until("document.getElementById('tip').hidden");
  });

  await step("the panels are resized by the mouse and by keys", async () => {
    const splitter = await box("#splitter"), before = (await box("#panels")).height;
    await page.drag(splitter.left + 200, splitter.top + 2, splitter.left + 200, splitter.top - 98);
    assert.ok(Math.abs((await box("#panels")).height - before - 100) <= 4);
    await page.evaluate("document.getElementById('splitter').focus()");
    await page.press("ArrowDown");
    assert.ok(Math.abs((await box("#panels")).height - before - 80) <= 4);
    await page.evaluate("document.activeElement.blur()");
    await page.drag(splitter.left + 200, splitter.top - 78, splitter.left + 200, splitter.top + 2);
    const gutter = await box("#gutter-splitter");
    await page.drag(gutter.left + 3, gutter.top + 200, gutter.left + 63, gutter.top + 200);
    assert.ok(Math.abs((await box("#rows")).width - 290) <= 4);
    await page.drag(gutter.left + 63, gutter.top + 200, gutter.left + 3, gutter.top + 200);
  });

  await step("several rows are pinned, and stay while others scroll", async () => {
    const wanted = [thread, whole.rows.find((key) => key.startsWith("lwp:"))];
    for (const key of wanted) {
      await page.click(x(0.5), await place(key));
      await page.until(`window.sigmund.state().focus === ${JSON.stringify(key)}`);
      await page.press("p");
      await settled();
    }
    await page.wheel(canvas.left + 100, canvas.top + 200, 0, 400);
    await settled();
    const now = await state();
    assert.deepEqual(now.pinned, wanted);
    for (const key of wanted) assert.ok(now.rows.includes(key));
    for (const key of wanted) await page.evaluate(`document.querySelector("#row-pin-${key.replace(":", "-")} .pin").click()`);
    assert.deepEqual((await state()).pinned, []);
    await page.wheel(canvas.left + 100, canvas.top + 200, 0, -9999);
    await all();
  });

  await step("m marks and measures several intervals", async () => {
    await page.click(x(0.5), await place(thread));
    await settled();
    for (let turn = 0; turn < 3; turn++) { await page.press("m"); await settled(); await page.press("."); await settled(); }
    const { marks } = await state();
    assert.equal(marks.length, 3);
    assert.match(await text("#panel"), /3 marks: .* in all, .* on average, .* the longest/);
    await all();
  });

  const copied = [];
  await step("what is selected is copied as text, as SQL and as a command", async () => {
    await test.watchCopies();
    for (const key of [thread, whole.rows.find((key) => key.startsWith("lwp:"))]) {
      const y = await place(key);
      await page.click(x(0.5), y);
      await page.drag(x(0.3), y, x(0.6), y, ["Shift"]);
      await settled();
      await page.until(`/--states/.test(document.getElementById("panel").innerText) && document.getElementById("panel").innerText.includes(${JSON.stringify(key.replace(":", " "))})`);
      const found = { key };
      for (const what of ["text", "SQL", "command"]) {
        await panelButton(`Copy ${what}`);
        found[what] = await test.copied();
      }
      copied.push(found);
      await page.press("Escape");
    }
    // Of a measure, of the whole trace.
    await test.panel("measures");
    await test.fill("#panel select", "latency");
    await page.until("/--latency/.test(document.querySelector('#panel code')?.innerText)");
    const found = { key: "", rows: (await ask("measure?name=latency")).rows.length };
    for (const what of ["SQL", "command"]) {
      await panelButton(`Copy ${what}`);
      found[what] = await test.copied();
    }
    copied.push(found);
    await test.fill("#panel select", "states");
    await page.until("/--states/.test(document.querySelector('#panel code')?.innerText)");
  });

  await step("rows of those that the focused one interacts with", async () => {
    await page.click(x(0.5), await place(thread));
    await settled();
    const before = (await state()).rows;
    await page.evaluate("document.getElementById('filter-with').click()");
    await settled();
    const related = (await state()).rows.filter((key) => key.startsWith("thread:"));
    const { rows } = await ask(`rows?kind=thread&with=${thread}&from=0&to=${whole.to}`);
    assert.deepEqual(related, rows.map((row) => row.key).slice(0, related.length));
    await page.evaluate("document.getElementById('filter-with').click()");
    await settled();
    assert.deepEqual((await state()).rows, before);
    await test.fill("#filter-state", "stalled");
    await settled();
    const stalled = (await state()).rows.filter((key) => key.startsWith("thread:"));
    const asked = await ask(`rows?kind=thread&state=stalled&from=0&to=${whole.to}`);
    assert.deepEqual(stalled, asked.rows.map((row) => row.key).slice(0, stalled.length));
    await test.fill("#filter-state", "");
    await all();
  });
  return { copied };
});
