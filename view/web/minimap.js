// @ts-check
// The whole trace at a glance: events, states, losses, and where the window is. And the axis of the window.

import * as api from "./api.js";
import { axisStep, instant } from "./format.js";
import { gaps, hatch } from "./losses.js";
import { ink } from "./palette.js";
import { stack } from "./population.js";

const PIXELS = 1024;

export class Minimap {
  /** @param {HTMLCanvasElement} canvas @param {any} trace @param {import("./navigation.js").Navigation} navigation */
  constructor(canvas, trace, navigation) {
    this.canvas = canvas;
    this.trace = trace;
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
    const tick = (/** @type {PointerEvent} */ event) => (event.offsetX / this.canvas.clientWidth) * trace.ticks;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const { from, to } = navigation.window;
      start = tick(event);
      held = start >= from && start <= to && to - from < trace.ticks * 0.98 ? start - from : null;
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
      if (Math.abs(end - start) > trace.ticks / 500) navigation.go({ from: Math.min(start, end), to: Math.max(start, end) });
      else navigation.go({ from: end - (to - from) / 2, to: end + (to - from) / 2 });
    });
  }

  async load() {
    const window = { from: 0, to: this.trace.ticks + 1, pixels: PIXELS };
    [this.events, this.population] = await Promise.all([api.floats("density", window), api.floats("population", window)]);
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
    const x = (/** @type {number} */ tick) => (tick / Math.max(this.trace.ticks, 1)) * width;
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
    if (this.events) {
      const most = this.events.reduce((most, events) => Math.max(most, events), 0) || 1;
      context.fillStyle = colours.dim;
      for (let pixel = 0; pixel < PIXELS; pixel++) {
        const tall = (this.events[pixel] / most) * (half - 2);
        context.fillRect((pixel * width) / PIXELS, half - tall, width / PIXELS + 0.5, tall);
      }
    }
    if (this.population) {
      const curve = { data: this.population, pixels: PIXELS, states: this.states };
      stack(context, curve, { x: 0, y: half + 1, width, height: height - half - 1 });
    }
    context.fillStyle = hatch(colours.text);
    for (const { from, to } of gaps(this.trace.losses)) {
      const x = (/** @type {number} */ tick) => (tick / Math.max(this.trace.ticks, 1)) * width;
      const begin = Math.min(x(from), width - 3);
      context.fillRect(begin, 0, Math.max(x(to) - begin, 3), height);
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
