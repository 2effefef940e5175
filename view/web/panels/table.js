// @ts-check
// Tables of panels, and small pieces of them. Texts from traces are text, never markup.

import { printable } from "../format.js";

/** @param {string} tag @param {Record<string, string>} [attributes] @param {(Node | string)[]} children */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @typedef {{text: string, number?: boolean, swatch?: string}} Cell */

/** @param {string} name @param {{name: string, about?: string, number?: boolean}[]} columns @param {Cell[][]} rows @param {(((row: number) => void) | null)} [jump] */
export function table(name, columns, rows, jump = null) {
  const head = element("tr", {}, ...columns.map((column) =>
    element("th", { scope: "col", ...(column.number ? { class: "number" } : {}), ...(column.about ? { title: column.about } : {}) }, printable(column.name))));
  const lines = rows.map((cells, place) => {
    const line = element("tr", jump ? { class: "jump", tabindex: "0" } : {}, ...cells.map((cell) => {
      const made = element("td", cell.number ? { class: "number" } : {});
      if (cell.swatch) {
        const swatch = element("span", { class: "swatch" });
        swatch.style.background = cell.swatch;
        made.append(swatch);
      }
      made.append(printable(cell.text));
      return made;
    }));
    if (jump) {
      line.addEventListener("click", () => jump(place));
      line.addEventListener("keydown", (event) => { if (event.key === "Enter") jump(place); });
    }
    return line;
  });
  return element("table", { "aria-label": name }, element("thead", {}, head), element("tbody", {}, ...lines));
}

/** A button that copies a text. @param {string} label @param {() => string} text */
export function copyButton(label, text) {
  const button = element("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      // Without the clipboard, the text can be copied by hand.
      const area = /** @type {HTMLTextAreaElement} */ (element("textarea", { "aria-label": label, readonly: "" }));
      area.value = text();
      button.after(area);
      area.select();
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

/** @param {string} text */
export function note(text) {
  return element("p", { class: "note" }, printable(text));
}
