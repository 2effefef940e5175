// @ts-check
// Lengths and instants for people.

const UNITS = /** @type {const} */ ([["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]]);

/** A length in ticks, in a unit that suits it; in ticks where the rate of the clock is not known.
 * @param {number} ticks @param {number | null} hz */
export function length(ticks, hz) {
  if (hz === null) return `${grouped(ticks)} ticks`;
  const seconds = Math.abs(ticks) / hz;
  const [unit, scale] = UNITS.find(([, scale]) => seconds * scale >= 1) ?? UNITS[3];
  const value = (ticks / hz) * scale;
  const digits = Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return `${trimmed(value.toFixed(digits))} ${unit}`;
}

/** An instant, as precise as a step between two of them. @param {number} tick @param {number} step @param {number | null} hz */
export function instant(tick, step, hz) {
  if (hz === null) return grouped(Math.round(tick));
  const [unit, scale] = UNITS.find(([, scale]) => (step / hz) * scale >= 1) ?? UNITS[3];
  // Digits that the step needs, in a unit that the whole instant suits.
  const [whole, wholeScale] = UNITS.find(([, scale]) => (tick / hz) * scale >= 1) ?? [unit, scale];
  const digits = Math.max(0, Math.ceil(-Math.log10((step / hz) * wholeScale) - 1e-9));
  return `${((tick / hz) * wholeScale).toFixed(Math.min(12, digits))} ${whole}`;
}

/** A step for about `count` labels over a length, one of 1, 2, 5 × 10^n in seconds or ticks.
 * @param {number} ticks @param {number} count @param {number | null} hz */
export function axisStep(ticks, count, hz) {
  const unit = hz ?? 1;
  const raw = ticks / unit / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= raw * (1 - 1e-9)) ?? 10;
  return factor * power * unit;
}

/** @param {number} share */
export function percent(share) {
  const value = share * 100;
  return value > 0 && value < 0.01 ? "< 0.01 %" : `${value.toFixed(2)} %`;
}

/** @param {number} number */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A number of things: `1 LWP`, `2 LWPs`. @param {number} number @param {string} thing */
export function counted(number, thing) {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** @param {string} text */
function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A name whose characters that hide or reorder others are escapes. @param {unknown} text */
export function printable(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
