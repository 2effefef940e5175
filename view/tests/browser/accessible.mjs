// axe-core on each panel, light and dark: `node accessible.mjs URL FOLDER AXE`, where AXE is axe.min.js (view/tests/browser/install). Nothing
// serious or critical is accepted.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { begin } from "./harness.mjs";

const test = await begin();
const { page, state, settled, step } = test;
const axe = readFileSync(process.argv[4], "utf8");

/** What axe finds in the page as it is. */
const found = async () => {
  // By the protocol: the page's policy allows no script of others.
  await page.evaluate(`typeof axe === "object" || (() => { ${axe}; return true; })()`);
  const { violations, passes } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then(({ violations, passes }) => ({ passes: passes.length, violations: violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 4).map(({ html, any, all }) => html.slice(0, 200) + ' ' + (any[0] ?? all[0])?.message) })) }))");
  assert.ok(passes > 10, "axe has looked at the page");
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical");
};

await test.run(async () => {
  const rows = (await state()).rows;
  const panels = await page.evaluate("[...document.querySelectorAll('#tabs button')].map((tab) => tab.id.replace('tab-', ''))");
  assert.ok(panels.length >= 8);
  for (const scheme of ["light", "dark"]) {
    await page.media({ "prefers-color-scheme": scheme });
    await page.evaluate(`document.getElementById("row-${rows.find((key) => key.startsWith("lwp:")).replace(":", "-")}").click()`);
    await settled();
    for (const name of panels) {
      await step(`${scheme}: ${name}`, async () => {
        await test.panel(name);
        await settled();
        if (name === "latency") {
          await test.fill("#panel input:nth-of-type(1)", "sched_waking");
          await page.until("document.querySelectorAll('#panel input').length === 3");
          await test.fill("#panel input:nth-of-type(2)", "sched_switch");
          await page.until("document.getElementById('cdf')", 40);
        }
        if (name === "selection") await test.click("#statistics-events summary");
        if (name === "marks") { await page.press("m"); await settled(); }
        assert.deepEqual(await found(), []);
        if (name === "selection") await test.click("#statistics-events summary");
      });
    }
    for (const [name, key] of [["help", "?"], ["search", "/"]]) {
      await step(`${scheme}: ${name}`, async () => {
        await page.evaluate("document.activeElement.blur()");
        await page.press(key);
        await page.until(`document.getElementById("${name}").open`);
        assert.deepEqual(await found(), []);
        await page.press("Escape");
        await page.until(`!document.getElementById("${name}").open`);
      });
    }
    await page.press("Escape");
  }
  return {};
});
