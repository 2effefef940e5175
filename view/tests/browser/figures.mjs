// The figures of docs/view.md, measured again: `node figures.mjs SIGMUND TRACE [--web]`. It prints a line for each. With --web
// the page is that on disk, not the one in the program.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { launch } from "./cdp.mjs";
import { cpuSeconds, megabytes, megabytesOf } from "./memory.mjs";
import { proxied } from "./proxy.mjs";

const WINDOWS = 200, ROWS = 60, PIXELS = 2000;
const [program, trace] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const cache = mkdtempSync(join(tmpdir(), "sigmund-figures-"));

/** Starts a server; gives its URL when it is there. */
async function serve() {
  const begun = performance.now();
  const child = spawn(program, ["view", trace, "--no-open", "--cache", cache], { stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of createInterface({ input: child.stdout })) return { child, url: line, took: performance.now() - begun, cpu: cpuSeconds(child.pid) };
  throw new Error(`${program} view ${trace}: it ended`);
}

/** Ends a server, and waits for it. */
const end = (child) => new Promise((ended) => { child.once("exit", ended); child.kill("SIGINT"); });

const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
const say = (what, ...values) => console.log(`${what}: ${values.join(", ")}`);
const ms = (value) => `${value.toFixed(1)} ms`;
const tail = (values) => [["median", quantile(values, 0.5)], ["p95", quantile(values, 0.95)], ["p99", quantile(values, 0.99)], ["longest", Math.max(...values)]].map(([name, value]) => `${name} ${ms(value)}`);

/** Numbers that look random, the same in each run. */
let seed = 7;
const dice = () => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 2147483648; };

async function questions({ url, child }) {
  const server = new URL(url);
  const headers = { Authorization: `Bearer ${server.hash.replace("#token=", "")}` };
  const ask = async (question, body = undefined) => {
    const begun = performance.now();
    const answer = await fetch(new URL(`api/${question}`, server.origin), { headers, ...(body ? { method: "POST", body: JSON.stringify(body) } : {}) });
    const bytes = await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`${question}: ${new TextDecoder().decode(bytes)}`);
    return { took: performance.now() - begun, json: () => JSON.parse(new TextDecoder().decode(bytes)) };
  };
  const { ticks, counts } = (await ask("trace")).json();
  say("trace", `${counts.events} events`, `${counts.threads} user threads`, `${counts.lwps} LWPs`, `${counts.cpus} CPUs`);
  const kinds = counts.threads > 0 ? ["thread"] : ["lwp", "cpu"];
  const keys = [];
  for (const kind of kinds) keys.push(...(await ask(`rows?kind=${kind}&sort=busy&limit=${ROWS}`)).json().rows.map((row) => row.key));
  const pictures = [];
  for (let round = -5; round < WINDOWS; round++) {
    const length = Math.max(ticks * 10 ** (-6 * dice()), 16), from = Math.floor(dice() * Math.max(ticks - length, 1));
    const { took } = await ask("tiles", { from, to: Math.ceil(from + length), pixels: PIXELS, keys: keys.slice(0, ROWS) });
    // The first ones read pages of the index for the first time.
    if (round >= 0) pictures.push(took);
  }
  say(`a picture of ${Math.min(keys.length, ROWS)} rows, ${PIXELS} pixels, ${WINDOWS} windows`, ...tail(pictures));
  const best = async (question) => {
    const took = [];
    for (let round = 0; round < 5; round++) took.push((await ask(question)).took);
    return ms(quantile(took, 0.5));
  };
  const half = `from=${Math.floor(ticks / 3)}&to=${Math.floor(ticks / 3) * 2}`;
  say("states of all rows, exact", await best(`selection?${half}`));
  const state = counts.threads > 0 ? "active" : "running";
  const sorted = [];
  // Another window each time: the order of one is kept.
  for (let round = 1; round <= 5; round++) sorted.push((await ask(`rows?kind=${kinds[0]}&sort=${state}&limit=100&from=${round * 10}&to=${Math.floor(ticks / 2)}`)).took);
  say("rows sorted by time in a state", ms(quantile(sorted, 0.5)));
  say("memory of the server", `${megabytes(child.pid, "VmRSS").toFixed(0)} MB`, `of that ${megabytes(child.pid, "RssAnon").toFixed(0)} MB its own (RssAnon), ${megabytes(child.pid, "RssFile").toFixed(0)} MB mapped pages of the index and of the program (RssFile)`, `at most ${megabytes(child.pid, "VmHWM").toFixed(0)} MB so far`);
}

/** The time between frames, and of tasks that held the page up, while something is done. */
async function frames(page, what, work) {
  await page.evaluate(`(() => {
    const found = window.measured = { deltas: [], draws: [], tasks: [], on: true };
    let last = performance.now();
    const frame = (now) => { found.deltas.push(now - last); last = now; if (found.on) requestAnimationFrame(frame); };
    requestAnimationFrame((now) => { last = now; requestAnimationFrame(frame); });
    found.observer = new PerformanceObserver((list) => found.tasks.push(...list.getEntries().map((entry) => entry.duration)));
    found.observer.observe({ type: "longtask" });
    window.sigmund.measure();
  })()`);
  await work();
  const { deltas, tasks, draws } = await page.evaluate("(() => { measured.on = false; measured.observer.disconnect(); return { deltas: measured.deltas, tasks: measured.tasks, draws: window.sigmund.measure() }; })()");
  say(`frames while ${what} (${deltas.length})`, ...tail(deltas));
  say(`  of that the page's own work`, ...tail(draws));
  say(`  tasks of more than 50 ms`, tasks.length, ...(tasks.length ? [`longest ${ms(Math.max(...tasks))}`] : []));
}

async function inTheBrowser(url) {
  const { browser, page } = await launch();
  const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
  try {
    await page.open(url);
    await page.until("window.sigmund && window.sigmund.state().firstPictureMs !== undefined");
    say("first picture after the URL", ms(await page.evaluate("window.sigmund.state().firstPictureMs")));
    await pause(1500);
    const [left, top, width, height] = await page.evaluate("(() => { const r = document.getElementById('canvas').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()");
    const y = top + height / 2;
    for (let step = 0; step < 5; step++) await page.press("w");
    await pause(1000);
    await frames(page, "panning", async () => {
      for (let sweep = 0; sweep < 6; sweep++) {
        const [begin, finish] = sweep % 3 === 2 ? [left + 20, left + width - 20] : [left + width - 20, left + 20];
        await page.mouse("mousePressed", begin, y, { buttons: 1, clicks: 1 });
        for (let step = 1; step <= 60; step++) {
          await page.mouse("mouseMoved", begin + ((finish - begin) * step) / 60, y, { buttons: 1 });
          await pause(16);
        }
        await page.mouse("mouseReleased", finish, y, { clicks: 1 });
      }
    });
    await frames(page, "zooming", async () => {
      for (let step = 0; step < 120; step++) {
        await page.wheel(left + width / 3, y, 0, step % 60 < 30 ? -60 : 60, ["Control"]);
        await pause(16);
      }
      await pause(500);
    });
    await frames(page, "scrolling", async () => {
      for (let step = 0; step < 90; step++) {
        await page.wheel(left + width / 3, y, 0, 40);
        await pause(16);
      }
      await pause(500);
    });
    const { metrics } = await page.send("Performance.enable").then(() => page.send("Performance.getMetrics"));
    const heap = metrics.find((metric) => metric.name === "JSHeapUsedSize").value / 2 ** 20;
    say("memory of the browser", `${heap.toFixed(0)} MB JavaScript's heap`, `${megabytesOf(browser.child.pid).toFixed(0)} MB of the page's process, less what it shares`);
  } finally {
    await browser.close();
  }
}

try {
  const first = await serve();
  const index = readdirSync(cache).map((name) => statSync(join(cache, name)).size).reduce((sum, size) => sum + size, 0);
  say("index made once", ms(first.took), `${first.cpu.toFixed(1)} s of CPU time`, `at most ${megabytes(first.child.pid, "VmHWM").toFixed(0)} MB of memory`, `${(index / 1e6).toFixed(0)} MB`);
  await end(first.child);
  const server = await serve();
  say("opened again", ms(server.took));
  const page = process.argv.includes("--web") ? await proxied(server.url) : { url: server.url, close() {} };
  try {
    await inTheBrowser(page.url);
    await questions(server);
  } finally {
    page.close();
    await end(server.child);
  }
} finally {
  rmSync(cache, { recursive: true, force: true });
}
