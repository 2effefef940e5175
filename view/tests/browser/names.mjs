// `node names.mjs URL FOLDER`: names with markup, quotes and direction marks are text wherever the page shows them.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { launch } from "./cdp.mjs";

const [url, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const { browser, page } = await launch();
try {
  await page.open(url);
  await page.until("window.sigmund && window.sigmund.state().rows.filter((key) => key.startsWith('thread:')).length >= 4");
  const shown = [];
  // The head of the CPUs comes first.
  for (let row = 0; row < 4; row++) await page.press("ArrowDown");
  for (const panel of ["details", "selection", "listing", "measures", "tree", "marks"]) {
    await page.evaluate(`document.getElementById("tab-${panel}").click()`);
    await page.press("ArrowDown");
    await page.press("m");
    await new Promise((resolve) => setTimeout(resolve, 400));
    shown.push(await page.evaluate("document.body.innerText"));
  }
  const all = shown.join("\n");
  assert.ok(all.includes("<img/src=x/onerror=alert(1)>"), all);
  assert.ok(all.includes("</script><script>alert(2)</script>"), all);
  assert.ok(all.includes("\\u{202e}live") && !all.includes("\u202e"), "direction marks are shown as escapes");
  assert.equal(await page.evaluate("document.querySelectorAll('#main img, #panels img, #rows script').length"), 0);
  assert.deepEqual(page.complaints, []);
  console.log(JSON.stringify({ shown: all.length }));
} catch (error) {
  await page.screenshot(join(folder, "names.png")).catch(() => {});
  console.error(error.message, page.complaints);
  process.exitCode = 1;
} finally {
  await browser.close();
}
