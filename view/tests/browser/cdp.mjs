// Drives a Chromium over a pipe, by the Chrome DevTools Protocol (https://chromedevtools.github.io/devtools-protocol/).
// Nothing but node: messages are JSON, separated by NUL, on descriptors 3 (to the browser) and 4 (from it).

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Starts a browser, and opens a page in it. */
export async function launch({ program = "chromium", width = 1400, height = 900 } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "sigmund-chromium-"));
  const child = spawn(program, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    `--user-data-dir=${profile}`, `--window-size=${width},${height}`, "--remote-debugging-pipe", "about:blank"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const browser = new Browser(child, profile);
  const { targetInfos } = await browser.send("Target.getTargets");
  const target = targetInfos.find((info) => info.type === "page");
  const { sessionId } = await browser.send("Target.attachToTarget", { targetId: target.targetId, flatten: true });
  const page = new Page(browser, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
  await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  return { browser, page };
}

class Browser {
  constructor(child, profile) {
    this.child = child;
    this.profile = profile;
    this.next = 1;
    this.waiting = new Map();
    this.listeners = [];
    let rest = "";
    child.stdio[4].setEncoding("utf8");
    child.stdio[4].on("data", (chunk) => {
      const parts = (rest + chunk).split("\0");
      rest = parts.pop();
      for (const part of parts) this.receive(JSON.parse(part));
    });
    child.on("exit", () => {
      for (const { reject } of this.waiting.values()) reject(new Error("the browser has ended"));
      this.waiting.clear();
    });
  }

  receive(message) {
    if (message.id === undefined) { this.listeners.forEach((listener) => listener(message)); return; }
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) waiting?.reject(new Error(`${waiting.method}: ${message.error.message}`));
    else waiting?.resolve(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.next++;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, method }));
  }

  async close() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.send("Browser.close").catch(() => {});
    const killed = setTimeout(() => this.child.kill("SIGKILL"), 3000);
    await ended;
    clearTimeout(killed);
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

const MODIFIERS = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

class Page {
  constructor(browser, session) {
    this.browser = browser;
    this.session = session;
    /** What the page complained about: errors, exceptions, violations of its policy. */
    this.complaints = [];
    browser.listeners.push(({ method, params, sessionId }) => {
      if (sessionId !== session) return;
      if (method === "Runtime.exceptionThrown") this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) this.complaints.push(params.args.map((arg) => arg.value ?? arg.description).join(" "));
      if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) this.complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    });
  }

  send(method, params = {}) {
    return this.browser.send(method, params, this.session);
  }

  async open(url) {
    await this.send("Page.navigate", { url });
  }

  /** The value of an expression in the page; a promise is waited for. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  /** Waits until an expression is true. */
  async until(expression, seconds = 60) {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const found = await this.evaluate(expression).catch(() => false);
      if (found) return found;
      if (Date.now() > end) throw new Error(`not within ${seconds} s: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  async press(key, modifiers = []) {
    const bits = modifiers.reduce((bits, name) => bits | MODIFIERS[name], 0);
    const text = key.length === 1 && !(bits & 6) ? { text: key } : key === "Enter" ? { text: "\r" } : {};
    const codes = { Enter: 13, Escape: 27, Tab: 9, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Backspace: 8 };
    const code = { windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0) };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, modifiers: bits, ...code, ...text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers: bits, ...code });
  }

  async type(text) {
    for (const key of text) await this.press(key);
  }

  async mouse(type, x, y, { button = "left", buttons = 0, clicks = 0, modifiers = [], deltaX = 0, deltaY = 0 } = {}) {
    const bits = modifiers.reduce((bits, name) => bits | MODIFIERS[name], 0);
    await this.send("Input.dispatchMouseEvent", { type, x, y, button, buttons, clickCount: clicks, modifiers: bits, deltaX, deltaY });
  }

  async click(x, y, clicks = 1, modifiers = []) {
    for (let click = 1; click <= clicks; click++) {
      await this.mouse("mousePressed", x, y, { buttons: 1, clicks: click, modifiers });
      await this.mouse("mouseReleased", x, y, { clicks: click, modifiers });
    }
  }

  async drag(fromX, fromY, toX, toY, modifiers = []) {
    await this.mouse("mousePressed", fromX, fromY, { buttons: 1, clicks: 1, modifiers });
    for (let step = 1; step <= 8; step++) {
      await this.mouse("mouseMoved", fromX + ((toX - fromX) * step) / 8, fromY + ((toY - fromY) * step) / 8, { buttons: 1, modifiers });
    }
    await this.mouse("mouseReleased", toX, toY, { clicks: 1, modifiers });
  }

  /** Two fingers that move apart or together, around (x, y), along x. */
  async pinch(x, y, from, to) {
    const points = (apart) => [-1, 1].map((side, id) => ({ x: x + (side * apart) / 2, y, id }));
    await this.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 2 });
    await this.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: points(from) });
    for (let step = 1; step <= 8; step++) await this.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: points(from + ((to - from) * step) / 8) });
    await this.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await this.send("Emulation.setTouchEmulationEnabled", { enabled: false });
  }

  wheel(x, y, deltaX, deltaY, modifiers = []) {
    return this.mouse("mouseWheel", x, y, { button: "none", deltaX, deltaY, modifiers });
  }

  /** Light or dark, reduced motion, forced colours. */
  media(features) {
    return this.send("Emulation.setEmulatedMedia", { features: Object.entries(features).map(([name, value]) => ({ name, value })) });
  }

  async screenshot(path) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
  }
}
