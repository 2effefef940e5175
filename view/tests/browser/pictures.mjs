// The pictures of docs/view.md: `node pictures.mjs URL FOLDER [URL_OF_TWO]`. URL is of `sigmund view` on a recording of examples/server,
// URL_OF_TWO of two such recordings. They are for eyes: nothing is checked.

import { join } from "node:path";

import { launch } from "./cdp.mjs";

const [url, folder, two] = process.argv.slice(2);
const { browser, page } = await launch({ width: 1280, height: 760 });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const settled = async () => {
  await page.until("window.sigmund && window.sigmund.state().all.every(({ drawn, rows }) => drawn.length === rows.length)", 60);
  await pause(900);
  await page.until("window.sigmund.state().asking === 0", 60);
};
const open = async (url) => { await page.open("about:blank"); await page.open(url); await page.until("window.sigmund?.state().firstPictureMs !== undefined", 60); await settled(); };
const sql = (query) => page.evaluate(`fetch("api/sql", { method: "POST", body: JSON.stringify({ query: ${JSON.stringify(query)} }), headers: { Authorization: "Bearer " + sessionStorage.getItem("sigmund-token") } }).then((r) => r.json())`);
const fill = (selector, value) => page.evaluate(`(() => { const i = document.querySelector(${JSON.stringify(selector)}); i.value = ${JSON.stringify(value)}; i.dispatchEvent(new Event("change")); })()`);
const show = async (kept) => { await page.evaluate(`location.hash = ${JSON.stringify(new URLSearchParams(kept).toString())}`); await settled(); };
const whole = async (kept) => { await page.evaluate("document.activeElement.blur()"); await page.press("Escape"); await show(kept); await page.press("0"); await settled(); };
const panel = async (name) => { await page.evaluate(`document.getElementById("tab-${name}").click()`); await settled(); };
const picture = async (name, ready = "true") => {
  await page.screenshot(join(folder, `${name}.png`));
  await page.media({ "prefers-color-scheme": "dark" });
  await settled();
  await page.until(ready, 60);
  await settled();
  await page.screenshot(join(folder, `${name}-dark.png`));
  await page.media({});
  await settled();
};
/** An interval with room around it, and the rows that it is about. */
const around = (at, took, keys, room = 1) => ({ from: Math.floor(at - took * room), to: Math.ceil(at + took * (1 + room)), focus: keys[0], tick: at + Math.floor(took / 2), pins: keys.join(",") });

try {
  await open(url);
  const first = BigInt((await sql("SELECT 1")).first_tick);
  const rows = async (query) => (await sql(query)).rows.map(([at, ...rest]) => [Number(BigInt(at) - first), ...rest]);
  await picture("view-whole");

  // Who stalls my thread?
  const [[stalled, stall, thread, lwp]] = await rows("SELECT ts_tick, dur_tick, thread, lwp FROM thread_states WHERE state = 'stalled' ORDER BY dur_tick DESC LIMIT 1");
  await show({ ...around(stalled, stall, [`thread:${thread}`, `lwp:${lwp}`], 0.3), panels: 230 });
  await panel("details");
  await page.until("document.querySelectorAll('#panel table').length > 1", 60);
  await picture("view-stalled");

  // Why was this request slow?
  await whole({ panels: 470 });
  await panel("measures");
  await fill("#panel select", "explain");
  await page.until("document.querySelector('#panel select')?.value === 'explain'");
  await fill("#panel input[placeholder='span or lock']", "request");
  await page.until("document.querySelector('#braid-slowest canvas')", 60);
  await settled();
  await picture("view-slow", "document.querySelector('#braid-slowest canvas')");
  await fill("#panel input[placeholder='span or lock']", "");
  await fill("#panel select", "states");
  await settled();

  // What woke it late?
  const [[woken, late, sleeper, waker]] = await rows("SELECT ts_tick, latency_tick, thread, waker_thread FROM ready_latency WHERE waker_thread IS NOT NULL AND kind = 'unpark' ORDER BY latency_tick DESC LIMIT 1");
  await show({ ...around(woken, late, [`thread:${sleeper}`, `thread:${waker}`], 0.5), panels: 230 });
  await panel("details");
  await page.until("document.querySelectorAll('#panel table').length > 1", 60);
  await picture("view-late");

  // Which lock convoy forms?
  const [[requested, wait, waiter, holder]] = await rows("SELECT ts_tick, wait_tick, thread, holder FROM locks WHERE holder IS NOT NULL AND kind = 'mutex' ORDER BY wait_tick DESC LIMIT 1");
  await show({ ...around(requested, wait, [`thread:${waiter}`, `thread:${holder}`], 0.3), sort: "blocked", panels: 260 });
  await fill("#filter-sort", "blocked");
  await panel("details");
  await page.until("document.querySelectorAll('#panel table').length > 1", 60);
  await picture("view-convoy");
  await fill("#filter-sort", "number");

  // What did the kernel do meanwhile?
  const [[began, took, slow]] = await rows("SELECT ts_tick, dur_tick, thread FROM spans WHERE name = 'request' ORDER BY dur_tick DESC LIMIT 1");
  await show({ ...around(began, took, [`thread:${slow}`], 0.05), panels: 300 });
  await panel("listing");
  await picture("view-kernel");

  // How long does it take?
  await whole({ panels: 330 });
  await panel("latency");
  await fill("#panel input:nth-of-type(3)", "request");
  await page.until("document.getElementById('cdf')", 60);
  await picture("view-latency", "document.getElementById('cdf')");

  if (two) {
    await open(two);
    await panel("compare");
    await page.until("document.querySelector('#panel tbody tr')", 60);
    await picture("view-compare");
  }
} finally {
  await browser.close();
}
