// @ts-check
// The keyboard.

/** @typedef {import("./main.js").Page} Page */
/** @type {{keys: string[], about: string, run: (page: Page) => void}[]} */
export const KEYS = [
  { keys: ["w", "+"], about: "zoom in", run: (page) => page.active.navigation.zoom(0.6, page.active.centre()) },
  { keys: ["s", "-"], about: "zoom out", run: (page) => page.active.navigation.zoom(1 / 0.6, page.active.centre()) },
  { keys: ["a", "ArrowLeft"], about: "move to the left", run: (page) => page.navigation.pan(-0.2) },
  { keys: ["d", "ArrowRight"], about: "move to the right", run: (page) => page.navigation.pan(0.2) },
  { keys: ["ArrowUp"], about: "row above", run: (page) => page.active.moveFocus(-1) },
  { keys: ["ArrowDown"], about: "row below", run: (page) => page.active.moveFocus(1) },
  { keys: ["PageUp"], about: "ten rows up", run: (page) => page.active.moveFocus(-10) },
  { keys: ["PageDown"], about: "ten rows down", run: (page) => page.active.moveFocus(10) },
  { keys: ["Enter", " "], about: "open or close the focused group", run: (page) => page.active.toggleGroup() },
  { keys: ["f"], about: "zoom to the focused interval", run: (page) => page.active.zoomToFocus() },
  { keys: [","], about: "previous interval of the focused row", run: (page) => page.active.neighbour(-1) },
  { keys: ["."], about: "next interval of the focused row", run: (page) => page.active.neighbour(1) },
  { keys: ["m"], about: "mark the selected or focused interval; its length and number are listed in the panel", run: (page) => page.active.addMark() },
  { keys: ["p"], about: "pin the focused row, or unpin it", run: (page) => page.active.pin() },
  { keys: ["u", "Backspace"], about: "undo navigation", run: (page) => page.navigation.undo() },
  { keys: ["U"], about: "redo navigation; so do Shift + Backspace and Ctrl + Y", run: (page) => page.navigation.redo() },
  { keys: ["]"], about: "rows of the focused kind taller", run: (page) => page.active.growRows(0.15) },
  { keys: ["["], about: "rows of the focused kind lower", run: (page) => page.active.growRows(-0.15) },
  { keys: ["<"], about: "of two super-traces: shift B to the left", run: (page) => page.comparison?.nudge(-0.05) },
  { keys: [">"], about: "of two super-traces: shift B to the right", run: (page) => page.comparison?.nudge(0.05) },
  { keys: ["0"], about: "the whole trace", run: (page) => page.navigation.go(page.navigation.extent) },
  { keys: ["/"], about: "search threads, LWPs, spans and events", run: (page) => page.head.openSearch() },
  { keys: ["?"], about: "these keys", run: (page) => page.head.openHelp() },
  { keys: ["Escape"], about: "clear the selection, the marks and the focus", run: (page) => page.active.clear() },
];

const MOUSE = [
  ["wheel", "scroll the rows"], ["Ctrl + wheel, pinch", "zoom at the pointer"], ["Shift + wheel", "move left and right"],
  ["drag", "move"], ["drag a border of names", "taller rows of that kind, wider names"], ["Shift + drag", "select an interval"], ["click", "focus a row and an interval"], ["double click", "zoom to the interval"], ["Alt + drag", "of two super-traces: shift B"],
];

/** @param {Page} page */
export function listen(page) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const isRedo = event.ctrlKey ? event.key.toLowerCase() === "y" && !event.shiftKey : event.shiftKey && event.key === "Backspace";
    if (isRedo && !event.altKey && !event.metaKey && !target.matches("input, textarea, select") && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      page.navigation.redo();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (target.matches("input, textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    // Arrows in panels scroll there, and buttons have keys of their own.
    if (target.closest("#panels") && (event.key.startsWith("Arrow") || event.key.startsWith("Page"))) return;
    if (target.matches("button, [role=tab], #panel tr") && (event.key === "Enter" || event.key === " ")) return;
    const found = KEYS.find(({ keys }) => keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.run(page);
  });
}

/** @param {HTMLElement} table */
export function describe(table) {
  const line = (/** @type {string[]} */ keys, /** @type {string} */ about) => {
    const row = document.createElement("tr"), first = document.createElement("td"), second = document.createElement("td");
    keys.forEach((key) => {
      const made = document.createElement("kbd");
      made.textContent = key;
      first.append(made, " ");
    });
    second.textContent = about;
    row.append(first, second);
    return row;
  };
  table.replaceChildren(...KEYS.map(({ keys, about }) => line(keys, about)), ...MOUSE.map(([what, about]) => line([what], about)));
}
