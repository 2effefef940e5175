// @ts-check
// The mouse, fingers, and what is under them.

import { byId } from "./document.js";
import { instant, length, percent, printable } from "./format.js";
import { HEIGHTS, SPAN_HEIGHT, lanes } from "./heights.js";
import { ofState } from "./palette.js";
import { intervalAt } from "./tiles.js";

export class Pointer {
  /** @param {import("./timeline.js").Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.listen();
  }

  listen() {
    const { canvas } = this.timeline;
    const tick = (/** @type {number} */ x) => {
      const { from, to } = this.timeline.navigation.window;
      return from + (x / canvas.clientWidth) * (to - from);
    };
    /** @type {{x: number, y: number, from: number, to: number, scroll: number, moved: boolean, select: boolean, shift: number | null} | null} */
    let drag = null;
    /** @type {Map<number, number>} */
    const touches = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.timeline.page.activate(this.timeline);
      touches.set(event.pointerId, event.offsetX);
      const { comparison } = this.timeline.page;
      const shift = event.altKey && this.timeline.letter === "B" && comparison ? comparison.navigation.shift : null;
      drag = { x: event.offsetX, y: event.offsetY, ...this.timeline.navigation.window, scroll: this.timeline.scroll, moved: false, select: event.shiftKey, shift };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (touches.size === 2 && touches.has(event.pointerId)) {
        const before = [...touches.values()];
        touches.set(event.pointerId, event.offsetX);
        const after = [...touches.values()];
        const factor = Math.abs(before[0] - before[1]) / Math.max(Math.abs(after[0] - after[1]), 1);
        this.timeline.navigation.zoom(factor, tick((after[0] + after[1]) / 2));
        // Lifted, these fingers are no click.
        if (drag) drag.moved = true;
        return;
      }
      if (!drag) { this.hover(event, tick(event.offsetX)); return; }
      if (Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 3) drag.moved = true;
      if (!drag.moved) return;
      byId("tip").hidden = true;
      if (drag.select) {
        const ends = [tick(drag.x), tick(event.offsetX)].sort((a, b) => a - b);
        this.timeline.focus.range = { from: Math.floor(ends[0]), to: Math.ceil(ends[1]) };
        this.timeline.redraw();
      } else if (drag.shift !== null) {
        const { from, to } = this.timeline.page.navigation.window;
        this.timeline.page.comparison?.setShift(drag.shift + ((event.offsetX - drag.x) / canvas.clientWidth) * (to - from));
      } else {
        const { from, to } = this.timeline.navigation.extent;
        const shift = ((drag.x - event.offsetX) / canvas.clientWidth) * (drag.to - drag.from);
        const move = Math.min(Math.max(shift, from - drag.from), to - drag.to);
        this.timeline.navigation.go({ from: drag.from + move, to: drag.to + move });
        this.timeline.scrollTo(drag.scroll + drag.y - event.offsetY);
      }
    });
    const end = (/** @type {PointerEvent} */ event) => {
      touches.delete(event.pointerId);
      const ended = drag;
      drag = null;
      if (!ended) return;
      if (ended.select && ended.moved) { this.timeline.page.showPanel("selection"); return; }
      if (ended.moved) return;
      const row = this.rowAt(event.offsetY);
      if (row) this.timeline.focusRow(row, Math.floor(tick(event.offsetX)));
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
    canvas.addEventListener("dblclick", () => this.timeline.zoomToFocus());
    const wheel = (/** @type {WheelEvent} */ event) => {
      event.preventDefault();
      const step = event.deltaMode === 1 ? 30 : 1;
      if (event.ctrlKey) this.timeline.navigation.zoom(Math.exp(event.deltaY * step * 0.003), tick(event.offsetX));
      else if (event.shiftKey) this.timeline.navigation.pan((event.deltaY + event.deltaX) * step * 0.001);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.timeline.navigation.pan(event.deltaX * step * 0.001);
      else this.timeline.scrollTo(this.timeline.scroll + event.deltaY * step);
    };
    canvas.addEventListener("wheel", wheel, { passive: false });
    this.timeline.names.addEventListener("wheel", (event) => { this.timeline.scrollTo(this.timeline.scroll + event.deltaY); }, { passive: true });
    this.timeline.scrollBar.addEventListener("scroll", () => { this.timeline.scroll = this.timeline.scrollBar.scrollTop * this.timeline.scrollScale(); this.timeline.redraw(); });
  }

  /** @param {number} y */
  placeAt(y) {
    const { placed, pinnedHeight } = this.timeline.rows.place(this.timeline.scroll, this.timeline.scroll + this.timeline.canvas.clientHeight);
    return placed.find((place) => {
      const top = place.pinned ? place.top : place.top - this.timeline.scroll;
      return y >= top && y < top + place.height && (place.pinned || y >= pinnedHeight);
    });
  }

  /** @param {number} y */
  rowAt(y) {
    return this.placeAt(y)?.row;
  }

  /** @param {PointerEvent} event @param {number} tick */
  hover(event, tick) {
    const tip = byId("tip");
    const place = this.placeAt(event.offsetY);
    const queue = place?.group && this.timeline.focus.queues.get(place.group.id);
    if (queue?.length) { this.tip(event, [instant(tick, (this.timeline.navigation.window.to - this.timeline.navigation.window.from) / 1000, this.timeline.trace.tick_hz), `ready queue: ${valueAt(queue, tick)}`]); return; }
    const tile = place?.row && this.timeline.tiles.get(place.row.key);
    if (!place?.row || !tile) { tip.hidden = true; return; }
    const { row } = place;
    const hz = this.timeline.trace.tick_hz;
    const y = event.offsetY - (place.pinned ? place.top : place.top - this.timeline.scroll);
    const lane = lanes(row.kind).find((lane) => y >= lane.y - 1 && y <= lane.y + lane.height + 1);
    const lines = [printable(`${row.kind} ${row.label}`), instant(tick, (this.timeline.navigation.window.to - this.timeline.navigation.window.from) / 1000, hz)];
    const track = tile.tracks.find((track) => track.name === lane?.name);
    if (track?.form === "intervals") {
      const found = intervalAt(track, tick);
      if (found) {
        const what = track.states ? this.timeline.braid.stateName(row.kind, found.value) : `${tile.ids[found.value]?.split(":")[0]} ${printable(tile.names[found.value] ?? "")}`;
        lines.push(`${what}: ${length(found.to - found.from, hz)}`);
      }
    } else if (track) lines.push(...this.sharesAt(row.kind, tile, track, tick));
    if (row.key === this.timeline.focus.key && y > HEIGHTS[row.kind]) {
      const depth = Math.floor((y - HEIGHTS[row.kind]) / SPAN_HEIGHT);
      const span = this.timeline.focus.spans.find((span) => span.depth === depth && span.from <= tick && span.to > tick);
      if (span) lines.push(printable(`${span.kind} ${span.name}: ${length(span.to - span.from, hz)}`), span.active === null ? "" : `active ${length(span.active, hz)}`, printable(span.source ?? ""));
    }
    const near = ((this.timeline.navigation.window.to - this.timeline.navigation.window.from) / this.timeline.canvas.clientWidth) * 5;
    for (const found of this.timeline.focus.disagreements) {
      if (Math.abs(found.at - tick) < near && [found.cpu, found.cpu_seen].includes(row.key)) lines.push(printable(`${found.name}: the probe read ${found.cpu_seen}, by sched_switch it was ${found.cpu}`));
    }
    this.tip(event, lines);
  }

  /** Shows lines beside the pointer. @param {PointerEvent} event @param {string[]} lines */
  tip(event, lines) {
    const tip = byId("tip");
    tip.textContent = lines.filter((line) => line !== "").join("\n");
    tip.hidden = false;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  /** The shares of a pixel, in words. @param {string} kind @param {import("./tiles.js").Tile} tile @param {import("./tiles.js").Track} track @param {number} tick */
  sharesAt(kind, tile, track, tick) {
    const pixel = Math.floor(((tick - tile.from) / (tile.to - tile.from)) * tile.pixels);
    const { data } = track;
    if (!track.states) {
      for (let at = 0; at < data.length; at += 4) {
        if (pixel < data[at] || pixel >= data[at] + data[at + 1]) continue;
        const who = data[at + 3] === 0xffffffff ? "several" : printable(tile.names[data[at + 3]] ?? "");
        return [`${who}: busy ${percent(data[at + 2] / 65535)}`];
      }
      return ["nobody"];
    }
    for (let at = 0; at < data.length; at += 3 + 2 * data[at + 2]) {
      if (pixel < data[at] || pixel >= data[at] + data[at + 1]) continue;
      const shares = [];
      for (let pair = 0; pair < data[at + 2]; pair++) shares.push([data[at + 3 + 2 * pair], data[at + 4 + 2 * pair]]);
      return shares.sort((a, b) => b[1] - a[1]).map(([state, share]) => `${ofState(this.timeline.braid.stateName(kind, state)).letter} ${this.timeline.braid.stateName(kind, state)}: ${percent(share / 65535)}`);
    }
    return [];
  }
}

/** The value that a counter has at a tick. @param {[number, number][]} points @param {number} tick */
function valueAt(points, tick) {
  return points.findLast(([at]) => at <= tick)?.[1] ?? points[0][1];
}
