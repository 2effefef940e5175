// @ts-check
// The colour, letter and hatch of each state. Colours differ for colour-blind eyes (after Okabe and Ito), too; letters and
// hatches tell them apart without colour.

/** @typedef {{name: string, letter: string, light: string, dark: string, hatch?: boolean, rank: number}} Style */

/** @type {Record<string, Style>} */
const THREAD = {
  active: style("active", "A", "#2a9d55", "#3fb96c", 0),
  running: style("running", "A", "#2a9d55", "#3fb96c", 0),
  interrupted: style("interrupted", "I", "#7a5195", "#b48ad0", 1),
  stalled: style("stalled", "S", "#d1361f", "#f0644d", 2),
  runnable: style("runnable", "S", "#d1361f", "#f0644d", 2),
  "in-kernel": style("in-kernel", "K", "#b8860b", "#dfb13c", 3),
  "disk-sleep": style("disk-sleep", "D", "#b8860b", "#dfb13c", 3),
  ready: style("ready", "R", "#e8a33d", "#f5bd62", 4),
  new: style("new", "N", "#f2cf8d", "#8d7440", 5),
  mounted: style("mounted", "M", "#6fb7a0", "#4d8f7a", 6),
  "off-cpu": style("off-cpu", "O", "#a9a9a9", "#7f7f7f", 7),
  stopped: style("stopped", "T", "#8c564b", "#b98476", 8),
  unmounted: style("unmounted", "U", "#b9b4d4", "#6c6690", 9),
  blocked: style("blocked", "B", "#a8c6e5", "#3d6186", 10),
  sleeping: style("sleeping", "B", "#a8c6e5", "#3d6186", 10),
  idle: style("idle", "L", "#dde5ec", "#2a3644", 11),
  unknown: { ...style("unknown", "?", "#c8ccd1", "#4a525c", 12), hatch: true },
  exited: style("exited", "X", "#ffffff", "#14181d", 13),
};

/** @param {string} name @param {string} letter @param {string} light @param {string} dark @param {number} rank @returns {Style} */
function style(name, letter, light, dark, rank) {
  return { name, letter, light, dark, rank };
}

/** @param {string} state */
export function ofState(state) {
  return THREAD[state] ?? THREAD.unknown;
}

const isDark = matchMedia("(prefers-color-scheme: dark)");

/** @param {string} state */
export function stateColour(state) {
  const found = ofState(state);
  return isDark.matches ? found.dark : found.light;
}

/** States in the order in which a pixel stacks them, from below. @param {string[]} states */
export function stackOrder(states) {
  return states.map((_, place) => place).sort((a, b) => ofState(states[a]).rank - ofState(states[b]).rank);
}

/** States in the order in which each gets a line of its own if it has any time: the worst news last, so that it stays.
 * @param {number[]} order */
export function rareOrder(order) {
  return [...order].reverse();
}

const probe = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(1, 1).getContext("2d"));

/** Any opaque colour of CSS as `#rrggbb`: colours of the system, too. @param {string} colour */
function resolved(colour) {
  probe.fillStyle = "#000000";
  probe.fillStyle = colour;
  return String(probe.fillStyle);
}

/** @param {string} hex @returns {[number, number, number]} */
function rgbOf(hex) {
  return [parseInt(hex.slice(1, 3), 16), parseInt(hex.slice(3, 5), 16), parseInt(hex.slice(5, 7), 16)];
}

/** @param {string} state */
export function stateRgb(state) {
  return rgbOf(stateColour(state));
}

/** @type {Map<string, [number, number, number]>} */
const identities = new Map();

/** A colour for a row, the same in each run. @param {string} key @returns {[number, number, number]} */
export function identityRgb(key) {
  const found = identities.get(key);
  if (found) return found;
  let hash = 2166136261;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 16777619) >>> 0;
  const step = (hash >>> 9) % 14;
  const made = isDark.matches ? fromHsl(hash % 360, 0.45, (38 + step) / 100) : fromHsl(hash % 360, 0.5, (68 + step) / 100);
  if (identities.size > 100_000) identities.clear();
  identities.set(key, made);
  return made;
}

/** @param {string} key */
export function identityColour(key) {
  const [red, green, blue] = identityRgb(key);
  return `rgb(${red} ${green} ${blue})`;
}

/** https://www.w3.org/TR/css-color-4/#hsl-to-rgb @param {number} hue @param {number} saturation @param {number} light @returns {[number, number, number]} */
function fromHsl(hue, saturation, light) {
  const part = (/** @type {number} */ n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (light - saturation * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

/** @type {ReturnType<typeof readInk> | null} */
let known = null;

/** Colours of the page, read again only after they changed: that costs a calculation of styles. */
export function ink() {
  known ??= readInk();
  return known;
}

function readInk() {
  const style = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const get = (name) => resolved(style.getPropertyValue(name).trim());
  return { back: get("--back"), panel: get("--panel"), line: get("--line"), text: get("--text"), dim: get("--dim"),
    accent: get("--accent"), focus: get("--focus"), dark: isDark.matches,
    pixels: { back: rgbOf(get("--back")), line: rgbOf(get("--line")) } };
}

/** Calls the function when colours change. @param {() => void} changed */
export function onColours(changed) {
  const recoloured = () => { identities.clear(); known = null; changed(); };
  isDark.addEventListener("change", recoloured);
  matchMedia("(forced-colors: active)").addEventListener("change", recoloured);
}
