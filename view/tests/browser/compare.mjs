// Two super-traces on one page: `node compare.mjs URL FOLDER`.

import assert from "node:assert/strict";

import { begin } from "./harness.mjs";

const test = await begin();
const { page, state, settled, step, text, ask, place, box } = test;
const length = (window) => window.to - window.from;

await test.run(async () => {
  const whole = await state();
  const a = await box("#canvas"), b = await box("#canvas-b");
  const [traceA, traceB] = [await ask("trace"), await ask("b/trace")];
  const ratio = traceA.tick_hz / traceB.tick_hz;

  await step("both are drawn, each with its name", async () => {
    assert.deepEqual(whole.all.map(({ letter }) => letter), ["A", "B"]);
    for (const { drawn } of whole.all) assert.ok(drawn.some((key) => key.startsWith("cpu:")) && drawn.length > 3);
    assert.equal(await text("#title-a"), traceA.name);
    assert.equal(await text("#title-b"), traceB.name);
    assert.notEqual(traceA.path, traceB.path);
    assert.ok(b.top > a.top && a.left === b.left && a.width === b.width);
  });
  await test.screenshot("compare-light.png");

  await step("they are aligned by their begins, and the window holds both", async () => {
    assert.equal(whole.shift, 0);
    assert.equal(whole.all[0].from, 0);
    assert.ok(Math.abs(whole.all[1].from) <= 1);
    assert.ok(whole.to >= traceA.ticks && whole.all[1].to >= traceB.ticks);
  });

  await step("both move and zoom as one", async () => {
    await page.wheel(b.left + b.width / 4, b.top + 30, 0, -200, ["Control"]);
    await settled();
    const near = await state();
    assert.ok(length(near) < length(whole));
    const [one, other] = near.all;
    assert.ok(Math.abs(other.from * ratio - one.from) <= ratio + 1 && Math.abs(length(other) * ratio - length(one)) <= 2 * ratio + 2, JSON.stringify([one.from, other.from, ratio]));
    await page.press("0");
    await settled();
  });

  await step("a click makes its timeline the active one, which keys and panels are about", async () => {
    for (const [letter, suffix, canvas, prefix] of [["B", "-b", b, "b/"], ["A", "", a, ""]]) {
      const { rows } = (await state()).all.find((timeline) => timeline.letter === letter);
      const key = rows.find((key) => key.startsWith("lwp:"));
      await page.click(canvas.left + canvas.width / 3, await place(key, suffix));
      await settled();
      const now = await state();
      assert.deepEqual([now.letter, now.focus], [letter, key]);
      assert.ok(await page.evaluate(`document.getElementById("head-${letter.toLowerCase()}").classList.contains("active")`));
      await test.panel("selection");
      await page.until(`document.getElementById("panel").innerText.includes("--lwp ${key.split(":")[1]}")`);
      const shown = await text("#panel");
      assert.ok(shown.includes((letter === "A" ? traceA : traceB).path), shown);
      const window = now.all.find((timeline) => timeline.letter === letter);
      const asked = await ask(`${prefix}selection?from=${window.from}&to=${window.to}&keys=${key}`);
      for (const { ticks } of asked.states) assert.ok(shown.includes(String(ticks)), `${ticks}: ${shown}`);
    }
    await page.press("Escape");
  });

  await step("the figures are those of the command", async () => {
    await test.panel("compare");
    await test.watchCopies();
    for (const measure of ["summary", "states"]) {
      await test.fill("#panel select", measure);
      await page.until(`document.getElementById("panel").innerText.includes("--${measure}") && document.querySelector("#panel tbody tr")`);
      const asked = await ask(`compare?name=${measure}`);
      assert.ok(asked.rows.length > 0 && asked.columns.length > 3);
      // The table is drawn again when another measure is asked for.
      await page.until(`document.querySelectorAll("#panel tbody tr").length === ${Math.min(asked.rows.length, 1000)}`);
      assert.ok((await text("#panel")).includes(asked.command), asked.command);
    }
    await page.evaluate("[...document.querySelectorAll('#panel button')].find((button) => button.innerText === 'Copy command').click()");
    test.command = await test.copied();
    // In the window, from the begin of each.
    await page.press("w");
    await settled();
    await page.until("/--from [\\d.]+\\w+ --to [\\d.]+\\w+/.test(document.getElementById('panel').innerText)");
    test.windowed = await text("#panel code");
    await page.press("0");
    await settled();
  });

  await step("B is shifted by keys, by a hand, and by the instants that are focused", async () => {
    await page.press(">");
    await settled();
    const later = await state();
    assert.ok(later.shift > 0 && later.all[1].from < later.all[0].from);
    await page.press("<");
    assert.ok(Math.abs((await state()).shift) <= later.shift / 10);
    await page.evaluate("[...document.querySelectorAll('#head-b button')].find((button) => button.innerText === 'Align begins').click()");
    assert.equal((await state()).shift, 0);
    await page.drag(b.left + 100, b.top + 30, b.left + 200, b.top + 30, ["Alt"]);
    await settled();
    const dragged = await state();
    assert.ok(dragged.shift > 0, "Alt and drag");
    assert.match(await text("#shift"), /later/);
    for (const [letter, suffix, canvas, x] of [["A", "", a, 0.5], ["B", "-b", b, 0.4]]) {
      const { rows } = (await state()).all.find((timeline) => timeline.letter === letter);
      await page.click(canvas.left + canvas.width * x, await place(rows.find((key) => key.startsWith("lwp:")), suffix));
      await settled();
    }
    await page.evaluate("[...document.querySelectorAll('#head-b button')].find((button) => button.innerText === 'Align focus').click()");
    await settled();
    const aligned = await state();
    assert.ok(Math.abs(aligned.shift - dragged.shift - length(dragged) * 0.1) < length(dragged) / 100, `${aligned.shift} ${dragged.shift}`);
  });

  await step("the URL brings both back", async () => {
    await page.press("w");
    await settled();
    const before = await state();
    assert.match(await page.evaluate("location.href"), /shift=/);
    await page.evaluate("location.reload()");
    await page.until("window.sigmund && window.sigmund.state().firstPictureMs !== undefined");
    await settled();
    const after = await state();
    for (const name of ["from", "to", "shift", "letter", "focus"]) assert.deepEqual(after[name], before[name], name);
    await page.press("Escape");
    await page.evaluate("[...document.querySelectorAll('#head-b button')].find((button) => button.innerText === 'Align ends').click()");
    await page.press("0");
    await settled();
  });

  await step("dark", async () => {
    await page.media({ "prefers-color-scheme": "dark" });
    await settled();
    await test.screenshot("compare-dark.png");
  });
  return { command: test.command, windowed: test.windowed };
});
