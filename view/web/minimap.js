// @ts-check
// The whole trace at a glance: events, states, losses, and where the window is. And the axis of the window.

import { axisStep, instant } from "./format.js";
import { gaps, hatch } from "./losses.js";
import { ink } from "./palette.js";
import { stack } from "./population.js";

const PIXELS = 1024;

export class Minimap {
  /** @param {HTMLCanvasElement} canvas @param {any} trace @param {import("./api.js").Source} source
   * @param {import("./navigation.js").Navigation | import("./navigation.js").Shifted} navigation */
  constructor(canvas, trace, source, navigation) {
    this.canvas = canvas;
    this.trace = trace;
    this.source = source;
    this.navigation = navigation;
    /** @type {Float32Array | null} */
    this.events = null;
    /** @type {Float32Array | null} */
    this.population = null;
    this.states = trace.counts.threads > 0 ? trace.thread_states : trace.lwp_states;
    /** All but the window. @type {OffscreenCanvas | null} */
    this.still = null;
    let start = 0;
    /** @type {number | null} */
    let held = null;
    const tick = (/** @type {PointerEvent} */ event) => navigation.extent.from + (event.offsetX / this.canvas.clientWidth) * this.length;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const { from, to } = navigation.window;
      start = tick(event);
      held = start >= from && start <= to && to - from < this.length * 0.98 ? start - from : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId) || held === null) return;
      const { from, to } = navigation.window;
      navigation.go({ from: tick(event) - held, to: tick(event) - held + to - from });
    });
    canvas.addEventListener("pointerup", (event) => {
      if (held !== null) return;
      const end = tick(event);
      const { from, to } = navigation.window;
      if (Math.abs(end - start) > this.length / 500) navigation.go({ from: Math.min(start, end), to: Math.max(start, end) });
      else navigation.go({ from: end - (to - from) / 2, to: end + (to - from) / 2 });
    });
  }

  /** Of all that can be shown, in ticks. */
  get length() {
    const { from, to } = this.navigation.extent;
    return Math.max(to - from, 1);
  }

  /** @param {number} tick @param {number} width */
  x(tick, width) {
    return ((tick - this.navigation.extent.from) / this.length) * width;
  }

  async load() {
    const window = { from: 0, to: this.trace.ticks, pixels: PIXELS };
    [this.events, this.population] = await Promise.all([this.source.floats("density", window), this.source.floats("population", window)]);
    this.forget();
  }

  /** Draws it again in the next frame: its colours changed. */
  forget() {
    this.still = null;
  }

  draw() {
    const { width, height, context } = sized(this.canvas);
    if (this.canvas.width < 1 || this.canvas.height < 1) return;
    // What does not depend on the window is drawn once: some thousand rectangles.
    if (!this.still || this.still.width !== this.canvas.width || this.still.height !== this.canvas.height) {
      this.still = new OffscreenCanvas(this.canvas.width, this.canvas.height);
      const still = /** @type {OffscreenCanvasRenderingContext2D} */ (this.still.getContext("2d", { alpha: false }));
      still.setTransform(context.getTransform());
      this.drawStill(still, width, height);
    }
    const colours = ink();
    context.drawImage(this.still, 0, 0, width, height);
    const x = (/** @type {number} */ tick) => this.x(tick, width);
    const { from, to } = this.navigation.window;
    context.fillStyle = colours.back;
    context.globalAlpha = 0.6;
    context.fillRect(0, 0, x(from), height);
    context.fillRect(x(to), 0, width - x(to), height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.focus;
    context.strokeRect(x(from) + 0.5, 0.5, Math.max(x(to) - x(from), 2) - 1, height - 1);
  }

  /** Events above, states below, and what is missing over both. @param {OffscreenCanvasRenderingContext2D} context @param {number} width @param {number} height */
  drawStill(context, width, height) {
    const colours = ink();
    context.fillStyle = colours.back;
    context.fillRect(0, 0, width, height);
    const half = Math.floor(height / 2);
    // Beside a trace that lasts longer it is not as wide.
    const left = this.x(0, width), wide = Math.max(this.x(this.trace.ticks, width) - left, 1);
    if (this.events) {
      const most = this.events.reduce((most, events) => Math.max(most, events), 0) || 1;
      context.fillStyle = colours.dim;
      for (let pixel = 0; pixel < PIXELS; pixel++) {
        const tall = (this.events[pixel] / most) * (half - 2);
        context.fillRect(left + (pixel * wide) / PIXELS, half - tall, wide / PIXELS + 0.5, tall);
      }
    }
    if (this.population) {
      const curve = { data: this.population, pixels: PIXELS, states: this.states };
      stack(context, curve, { x: left, y: half + 1, width: wide, height: height - half - 1 });
    }
    context.fillStyle = hatch(colours.text);
    for (const { from, to } of gaps(this.trace.losses)) {
      const begin = Math.min(this.x(from, width), width - 3);
      context.fillRect(begin, 0, Math.max(this.x(to, width) - begin, 3), height);
    }
  }
}

/** Draws the axis of a window. @param {HTMLCanvasElement} canvas @param {{from: number, to: number}} window @param {number | null} hz */
export function drawAxis(canvas, window, hz) {
  const { width, height, context } = sized(canvas);
  const colours = ink();
  context.fillStyle = colours.back;
  context.fillRect(0, 0, width, height);
  const step = axisStep(window.to - window.from, width / 130, hz);
  context.fillStyle = colours.dim;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let tick = Math.ceil(window.from / step) * step; tick <= window.to; tick += step) {
    const x = ((tick - window.from) / (window.to - window.from)) * width;
    context.fillRect(Math.round(x), 0, 1, height);
    context.fillText(instant(tick, step, hz), x + 4, height / 2);
  }
}

/** A canvas as large as it is shown. @param {HTMLCanvasElement} canvas */
export function sized(canvas) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { width, height, context };
}
