// @ts-check
// How many rows are in each state over time, stacked.

import { stackOrder, stateColour } from "./palette.js";

/** Numbers of rows: `states` of them for each pixel. @typedef {{data: Float32Array, pixels: number, states: string[]}} Curve */

/** The most rows that there are at once; those that ended do not count. @param {Curve} curve */
export function highest({ data, pixels, states }) {
  const living = states.flatMap((state, place) => (state === "exited" ? [] : [place]));
  let most = 0;
  for (let pixel = 0; pixel < pixels; pixel++) {
    let sum = 0;
    for (const state of living) sum += data[pixel * states.length + state];
    most = Math.max(most, sum);
  }
  return most;
}

/** Draws a curve into a rectangle. @param {CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D} context @param {Curve} curve
 * @param {{x: number, y: number, width: number, height: number}} place */
export function stack(context, curve, { x, y, width, height }) {
  const { data, pixels, states } = curve;
  const most = highest(curve) || 1;
  const bottoms = new Float64Array(pixels).fill(y + height);
  for (const state of stackOrder(states)) {
    if (states[state] === "exited") continue;
    context.fillStyle = stateColour(states[state]);
    for (let pixel = 0; pixel < pixels; pixel++) {
      const tall = (data[pixel * states.length + state] / most) * height;
      if (tall === 0) continue;
      bottoms[pixel] -= tall;
      context.fillRect(x + (pixel * width) / pixels, bottoms[pixel], width / pixels + 0.5, tall);
    }
  }
}
