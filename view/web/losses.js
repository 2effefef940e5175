// @ts-check
// What is missing in the trace: where, and how it is drawn.

/** @typedef {{from: number | null, to: number | null, severity: string, kind: string, detail: string}} Loss */

/** Losses that hide something, and have a place. @param {Loss[]} losses @returns {{from: number, to: number}[]} */
export function gaps(losses) {
  return losses.flatMap(({ severity, from, to }) => (severity === "note" || from === null || to === null ? [] : [{ from, to }]));
}

/** @param {string} colour @returns {CanvasPattern} */
export function hatch(colour) {
  const step = 6;
  const image = new OffscreenCanvas(step, step);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (image.getContext("2d"));
  context.strokeStyle = colour;
  context.globalAlpha = 0.6;
  for (const shift of [-step, 0, step]) {
    context.beginPath(); context.moveTo(shift, step); context.lineTo(shift + step, 0); context.stroke();
  }
  return /** @type {CanvasPattern} */ (context.createPattern(image, "repeat"));
}
