// @ts-check
// Which rows there are, where each is, and their headers: a treegrid of which only the visible part exists.

import { counted, printable } from "./format.js";
import { HEIGHTS, SPAN_HEIGHT } from "./heights.js";

/** @typedef {{key: string, kind: string, label: string, name: string | null, pid: number | null, from: number, to: number | null,
 *   busy: number, created_by?: string | null, carries?: boolean}} Row */
/** A list of rows of one kind that the server has. @typedef {{kind: "cpu" | "lwp" | "thread", pid: number | "none" | null, all: number, total: number, rows: Map<number, Row>, asked: Set<number>}} List */
/** @typedef {{id: string, title: string, open: boolean, first: boolean, lists: List[]}} Group */
/** A row at its place. @typedef {{top: number, height: number, level: number, index: number, group?: Group, row?: Row, pinned?: boolean}} Placed */

const PAGE = 100;

export class Rows {
  /** @param {any} trace @param {import("./api.js").Source} source @param {HTMLElement} element @param {() => void} changed @param {(error: Error) => void} failed
   * @param {string} suffix of the ids of elements */
  constructor(trace, source, element, changed, failed, suffix) {
    this.trace = trace;
    this.source = source;
    this.suffix = suffix;
    this.element = element;
    this.changed = changed;
    this.failed = failed;
    /** @type {Row[]} */
    this.pinned = [];
    /** @type {Row | null} */
    this.focused = null;
    /** How many lanes of spans the focused row has. */
    this.spans = 0;
    /** @type {Group | null} */
    this.focusedGroup = null;
    this.filter = { name: "", state: "", sort: "number", with: "" };
    this.window = { from: 0, to: trace.ticks };
    /** @type {Map<string, HTMLElement>} */
    this.shown = new Map();
    this.epoch = 0;
    /** The border of a row is dragged. @type {(row: Row, height: number) => void} */
    this.resized = () => {};
    this.groups = this.makeGroups();
  }

  makeGroups() {
    /** @type {Group[]} */
    const groups = [{ id: "cpus", title: `CPUs (${this.trace.counts.cpus})`, open: true, first: true, lists: [list("cpu", null, this.trace.counts.cpus)] }];
    const withThreads = this.trace.processes.some((/** @type {any} */ process) => process.threads > 0);
    this.trace.processes.forEach((/** @type {any} */ process, /** @type {number} */ place) => {
      const pid = process.pid ?? "none";
      const lists = [];
      if (process.lwps > 0) lists.push(list("lwp", pid, process.lwps));
      if (process.threads > 0) lists.push(list("thread", pid, process.threads));
      const name = process.name === null ? "" : ` ${printable(process.name)}`;
      const counts = counted(process.lwps, "LWP") + (process.threads ? `, ${counted(process.threads, "user thread")}` : "");
      const open = withThreads ? process.threads > 0 : place < 8;
      groups.push({ id: `pid:${pid}`, title: `${process.pid ?? "no process"}${name} (${counts})`, open, first: open, lists });
    });
    return groups;
  }

  /** @param {Partial<typeof this.filter>} filter */
  setFilter(filter) {
    Object.assign(this.filter, filter);
    this.epoch++;
    for (const list of this.groups.flatMap((group) => group.lists)) {
      list.rows.clear();
      list.asked.clear();
      // As long as it is not known how many fit.
      list.total = list.all;
    }
    this.changed();
  }

  /** Rows from `top` to `bottom`, in pixels of the whole list; asks for those that are not known yet.
   * @param {number} top @param {number} bottom @returns {{placed: Placed[], height: number, pinnedHeight: number, count: number}} */
  place(top, bottom) {
    /** @type {Placed[]} */
    const placed = [];
    let y = 0, index = 0;
    for (const row of this.pinned) {
      const height = this.heightOf(row, true);
      placed.push({ top: y, height, level: 1, index: index++, row, pinned: true });
      y += height;
    }
    const pinnedHeight = y;
    const offset = y;
    y = 0;
    for (const group of this.groups) {
      if (group.lists.every((list) => list.total === 0)) continue;
      if (y + HEIGHTS.group > top && y < bottom) {
        placed.push({ top: y + offset, height: HEIGHTS.group, level: 1, index, group });
      }
      index++;
      y += HEIGHTS.group;
      if (!group.open) continue;
      for (const list of group.lists) {
        const height = HEIGHTS[list.kind];
        const extra = this.extraIn(list);
        const first = Math.max(0, Math.floor((top - y - (extra?.height ?? 0)) / height));
        for (let at = first; at < list.total; at++) {
          const shift = extra && at > extra.at ? extra.height : 0;
          const rowTop = y + at * height + shift;
          if (rowTop >= bottom) break;
          const row = list.rows.get(at);
          const own = extra && at === extra.at ? height + extra.height : height;
          if (rowTop + own > top) placed.push({ top: rowTop + offset, height: own, level: 2, index: index + at, row });
          if (!row) this.ask(list, at);
        }
        index += list.total;
        y += list.total * height + (extra?.height ?? 0);
      }
    }
    return { placed, height: y + offset, pinnedHeight, count: index };
  }

  /** @param {Row} row @param {boolean} [isPinned] */
  heightOf(row, isPinned = false) {
    return HEIGHTS[row.kind] + (!isPinned && row.key === this.focused?.key ? this.spans * SPAN_HEIGHT : 0);
  }

  /** The place of the focused row in a list, if it has spans there. @param {List} list */
  extraIn(list) {
    if (!this.focused || this.spans === 0 || this.focused.kind !== list.kind) return null;
    for (const [at, row] of list.rows) {
      if (row.key === this.focused.key) return { at, height: this.spans * SPAN_HEIGHT };
    }
    return null;
  }

  /** @param {List} list @param {number} at */
  ask(list, at) {
    const page = Math.floor(at / PAGE);
    if (list.asked.has(page)) return;
    list.asked.add(page);
    const epoch = this.epoch;
    const isState = (/** @type {string} */ word) => (list.kind === "thread" ? this.trace.thread_states : this.trace.lwp_states).includes(word);
    const state = isState(this.filter.state) ? this.filter.state : "";
    const sorts = ["number", "name", "busy", "start", "life"];
    const sort = sorts.includes(this.filter.sort) || isState(this.filter.sort) ? this.filter.sort : "number";
    const usesWindow = state || this.filter.with || !sorts.includes(sort);
    const filters = list.kind === "cpu" ? { with: this.filter.with }
      : { name: this.filter.name, state, sort, with: this.filter.with };
    this.source.ask("rows", { kind: list.kind, pid: list.pid, offset: page * PAGE, limit: PAGE, ...filters,
      from: usesWindow ? this.window.from : undefined, to: usesWindow ? this.window.to : undefined }).then((answer) => {
      if (epoch !== this.epoch) return;
      list.total = answer.total;
      answer.rows.forEach((/** @type {Row} */ row, /** @type {number} */ place) => list.rows.set(page * PAGE + place, row));
      this.changed();
    }, (error) => { list.asked.delete(page); this.failed(error); });
  }

  /** @param {Row} row */
  togglePin(row) {
    const at = this.pinned.findIndex((pinned) => pinned.key === row.key);
    if (at >= 0) this.pinned.splice(at, 1); else this.pinned.push(row);
    this.changed();
  }

  /** Draws the headers. @param {Placed[]} placed @param {number} scroll @param {number} total @param {(row: Row) => void} focus @param {number} pinnedHeight */
  render(placed, scroll, total, focus, pinnedHeight) {
    const now = new Set();
    this.element.setAttribute("aria-rowcount", String(total));
    for (const place of placed) {
      const id = place.group ? place.group.id : place.row ? (place.pinned ? "pin " : "") + place.row.key : `wait ${place.index}`;
      now.add(id);
      let element = this.shown.get(id);
      if (!element) {
        element = place.group ? this.groupHeader(place.group) : this.rowHeader(place.row, focus, place.pinned);
        this.shown.set(id, element);
        this.element.append(element);
      }
      element.style.top = `${place.pinned ? place.top : place.top - scroll}px`;
      element.style.height = `${place.height}px`;
      element.style.zIndex = place.pinned ? "2" : "";
      element.style.alignItems = place.row && place.height > HEIGHTS[place.row.kind] ? "flex-start" : "";
      element.hidden = !place.pinned && place.top - scroll < pinnedHeight - place.height;
      element.setAttribute("aria-rowindex", String(place.index + 1));
      if (place.group) element.setAttribute("aria-expanded", String(place.group.open));
      const isFocused = place.row ? place.row.key === this.focused?.key && !this.focusedGroup : !!place.group && place.group === this.focusedGroup;
      element.classList.toggle("focused", isFocused);
      if (place.row) element.setAttribute("aria-selected", String(isFocused));
      if (isFocused && element.id) this.element.setAttribute("aria-activedescendant", element.id);
    }
    for (const [id, element] of this.shown) {
      if (!now.has(id)) { element.remove(); this.shown.delete(id); }
    }
  }

  /** @param {Group} group */
  groupHeader(group) {
    const element = document.createElement("div");
    element.className = "row group";
    element.setAttribute("role", "row");
    element.setAttribute("aria-level", "1");
    element.id = `group-${group.id.replace(":", "-")}${this.suffix}`;
    const cell = document.createElement("span");
    cell.setAttribute("role", "rowheader");
    cell.textContent = title(group);
    element.title = group.title;
    element.append(cell);
    element.addEventListener("click", () => this.toggle(group));
    return element;
  }

  /** Opens a group, or closes it. @param {Group} group */
  toggle(group) {
    this.open(group, !group.open);
  }

  /** @param {Group} group @param {boolean} isOpen */
  open(group, isOpen) {
    if (group.open === isOpen) return;
    group.open = isOpen;
    const cell = this.shown.get(group.id)?.firstElementChild;
    if (cell) cell.textContent = title(group);
    this.changed();
  }

  /** @param {Row | undefined} row @param {(row: Row) => void} focus @param {boolean} [isPinned] */
  rowHeader(row, focus, isPinned) {
    const element = document.createElement("div");
    element.className = isPinned ? "row pinned" : "row";
    element.setAttribute("role", "row");
    element.setAttribute("aria-level", "2");
    const cell = document.createElement("span");
    cell.setAttribute("role", "rowheader");
    element.append(cell);
    if (!row) { cell.textContent = "…"; return element; }
    element.id = `row-${isPinned ? "pin-" : ""}${row.key.replace(":", "-")}${this.suffix}`;
    cell.textContent = printable(row.label);
    element.title = printable(`${row.kind} ${row.label}`);
    const pin = document.createElement("button");
    pin.className = "pin";
    pin.type = "button";
    pin.tabIndex = -1;
    pin.textContent = isPinned ? "unpin" : "pin";
    pin.setAttribute("aria-label", `${isPinned ? "Unpin" : "Pin"} ${printable(row.label)}`);
    pin.addEventListener("click", (event) => { event.stopPropagation(); this.togglePin(row); });
    const holder = document.createElement("span");
    holder.setAttribute("role", "gridcell");
    holder.style.marginLeft = "auto";
    holder.append(pin);
    element.append(holder);
    element.append(this.handle(row));
    element.addEventListener("click", () => focus(row));
    return element;
  }

  /** The lower border of a row, which is dragged. By keys it is [ and ]. @param {Row} row */
  handle(row) {
    const handle = document.createElement("span");
    handle.className = "handle";
    handle.setAttribute("aria-hidden", "true");
    let from = 0, height = 0;
    handle.addEventListener("pointerdown", (event) => { handle.setPointerCapture(event.pointerId); [from, height] = [event.clientY, HEIGHTS[row.kind]]; });
    handle.addEventListener("pointermove", (event) => { if (handle.hasPointerCapture(event.pointerId)) this.resized(row, height + event.clientY - from); });
    handle.addEventListener("click", (event) => event.stopPropagation());
    return handle;
  }

  /** The known rows, in their order. @returns {Row[]} */
  known() {
    return this.order().flatMap((entry) => ("key" in entry ? [entry] : []));
  }

  /** Groups and known rows, in their order. @returns {(Group | Row)[]} */
  order() {
    /** @type {(Group | Row)[]} */
    const rows = [];
    for (const group of this.groups) {
      if (group.lists.every((list) => list.total === 0)) continue;
      rows.push(group);
      if (!group.open) continue;
      for (const list of group.lists) {
        for (let at = 0; at < list.total; at++) {
          const row = list.rows.get(at);
          if (row) rows.push(row); else if (list.rows.size === 0) break;
        }
      }
    }
    return rows;
  }

  /** The place of a known row or of a group, without pins. @param {string} key of a row, or a group's id */
  topOf(key) {
    let y = 0;
    for (const group of this.groups) {
      if (group.lists.every((list) => list.total === 0)) continue;
      if (group.id === key) return y;
      y += HEIGHTS.group;
      if (!group.open) continue;
      for (const list of group.lists) {
        for (const [at, row] of list.rows) {
          if (row.key === key) return y + at * HEIGHTS[list.kind];
        }
        y += list.total * HEIGHTS[list.kind] + (this.extraIn(list)?.height ?? 0);
      }
    }
    return null;
  }
}

/** @param {Group} group */
function title(group) {
  return `${group.open ? "▾" : "▸"} ${group.title}`;
}

/** @param {"cpu" | "lwp" | "thread"} kind @param {number | "none" | null} pid @param {number} total @returns {List} */
function list(kind, pid, total) {
  return { kind, pid, all: total, total, rows: new Map(), asked: new Set() };
}
