// A browser with the page, and what its tests have in common: `const test = await begin();` of a script that is called as
// `node SCRIPT.mjs URL FOLDER`. Exit status 1, and the reason, when something is not as promised; pictures go to FOLDER.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { launch } from "./cdp.mjs";

export async function begin() {
  const [url, folder] = process.argv.slice(2);
  mkdirSync(folder, { recursive: true });
  const { browser, page } = await launch();
  const test = {
    url, folder, page,
    passed: /** @type {string[]} */ ([]),
    state: () => page.evaluate("window.sigmund.state()"),
    /** Waits for the picture of the window, and the panel about it. */
    settled: async () => {
      await page.until("window.sigmund.state().all.every(({ drawn, rows }) => drawn.length === rows.length)");
      await new Promise((resolve) => setTimeout(resolve, 350));
      await page.until("window.sigmund.state().asking === 0");
    },
    text: (selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`),
    /** The answer of the server itself. */
    ask: (question) => page.evaluate(`fetch(${JSON.stringify(`api/${question}`)}, { headers: { Authorization: "Bearer " + sessionStorage.getItem("sigmund-token") } }).then((r) => r.json())`),
    /** The middle of the header of a row. */
    place: (key, suffix = "") => page.evaluate(`(() => { const r = document.getElementById("row-${key.replace(":", "-")}${suffix}").getBoundingClientRect(); return r.top + Math.min(r.height / 2, 10); })()`),
    box: (selector) => page.evaluate(`(() => { const r = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return { left: r.left, top: r.top, width: r.width, height: r.height }; })()`),
    /** Writes into an input, and leaves it. */
    fill: (selector, value) => page.evaluate(`(() => { const i = document.querySelector(${JSON.stringify(selector)}); i.value = ${JSON.stringify(value)}; i.dispatchEvent(new Event("input")); i.dispatchEvent(new Event("change")); })()`),
    click: (selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`),
    panel: async (name) => { await page.evaluate(`document.getElementById("tab-${name}").click()`); },
    /** What is copied from now on can be read as `copied()`. */
    watchCopies: () => page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { window.copiedText = text; } }, configurable: true })"),
    copied: () => page.evaluate("window.copiedText"),
    step: async (name, work) => {
      try {
        await work();
        test.passed.push(name);
      } catch (error) {
        error.message = `${name}: ${error.message}`;
        throw error;
      }
    },
    screenshot: (name) => page.screenshot(join(folder, name)),
    /** Runs the steps, and ends the browser. `result` is printed beside what has passed. */
    run: async (steps, { refused = /$^/ } = {}) => {
      try {
        await page.open(url);
        await page.until("window.sigmund && window.sigmund.state().firstPictureMs !== undefined", 60);
        await test.settled();
        const result = await steps();
        await test.step("no error in the console, and no violation of the policy", async () => {
          assert.deepEqual(page.complaints.filter((text) => !refused.test(text)), []);
        });
        console.log(JSON.stringify({ passed: test.passed, ...result }));
      } catch (error) {
        await test.screenshot("failed.png").catch(() => {});
        console.error(error.message, "\npassed:", test.passed.join("; "), "\ncomplaints:", page.complaints, "\nstate:", await test.state().catch(() => null));
        process.exitCode = 1;
      } finally {
        await browser.close();
      }
    },
  };
  return test;
}
