// `node live.mjs URL FOLDER`: a running program is shown, and frozen to a timeline.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { launch } from "./cdp.mjs";

const [url, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const { browser, page } = await launch();
try {
  await page.open(url);
  await page.until("window.sigmund?.live && window.sigmund.live().looks >= 2");
  const text = await page.evaluate("document.body.innerText");
  for (const words of ["blocked", "waits for join", "lwp/0", "buffer in use"]) assert.ok(text.includes(words), `${words}: ${text.slice(0, 2000)}`);
  assert.ok(!(await page.evaluate("location.href")).includes("token"));
  await page.screenshot(join(folder, "live.png"));
  await page.evaluate("document.getElementById('freeze').click()");
  await page.until("window.sigmund?.state && window.sigmund.state().drawn.some((key) => key.startsWith('thread:'))", 40);
  await page.screenshot(join(folder, "frozen.png"));
  assert.deepEqual(page.complaints, []);
  console.log(JSON.stringify({ length: text.length }));
} catch (error) {
  await page.screenshot(join(folder, "failed.png")).catch(() => {});
  console.error(error.message, page.complaints);
  process.exitCode = 1;
} finally {
  await browser.close();
}
