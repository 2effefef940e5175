// @ts-check
// How tall rows of each kind are, and where lanes are in them.

/** The y and height of a lane within a row. @typedef {{name: string, y: number, height: number}} Lane */

const FIRST = /** @type {Record<string, number>} */ ({ cpu: 40, lwp: 34, thread: 20 });
/** In pixels. The head of a group stays as it is. @type {Record<string, number>} */
export const HEIGHTS = { group: 22, ...FIRST };
/** Of the lanes of spans of the focused row. */
export const SPAN_HEIGHT = 15;
/** Heights that a name still fits into, and that a window of rows still fits. */
const LEAST = 14, MOST = 160;

/** @type {Record<string, Lane[]>} */
const LANES = {
  cpu: [{ name: "lwp", y: 3, height: 15 }, { name: "thread", y: 20, height: 15 }],
  lwp: [{ name: "state", y: 3, height: 13 }, { name: "thread", y: 18, height: 12 }],
  thread: [{ name: "state", y: 3, height: 14 }],
};

/** The lanes of a kind of row: they grow with it. @param {string} kind @returns {Lane[]} */
export function lanes(kind) {
  const scale = HEIGHTS[kind] / FIRST[kind];
  if (scale === 1) return LANES[kind];
  return LANES[kind].map(({ name, y, height }) => ({ name, y: Math.round(y * scale), height: Math.max(2, Math.floor(height * scale)) }));
}

/** Makes rows of a kind taller or lower. @param {string} kind @param {number} height */
export function resize(kind, height) {
  if (FIRST[kind]) HEIGHTS[kind] = Math.round(Math.min(Math.max(height, LEAST), MOST));
}

/** Those that differ from the first ones, as a word for the URL: `cpu60,thread30`. */
export function toText() {
  return Object.keys(FIRST).filter((kind) => HEIGHTS[kind] !== FIRST[kind]).map((kind) => `${kind}${HEIGHTS[kind]}`).join(",");
}

/** @param {string} text as of `toText` */
export function fromText(text) {
  for (const kind of Object.keys(FIRST)) HEIGHTS[kind] = FIRST[kind];
  for (const [, kind, height] of text.matchAll(/(cpu|lwp|thread)(\d+)/g)) resize(kind, Number(height));
}
