// @ts-check
// User threads by the one that created them.

import * as api from "../api.js";
import { length, printable } from "../format.js";
import { element, note } from "./table.js";

const PAGE = 200;

/** @param {HTMLElement} panel @param {import("../main.js").Page} page @param {AbortSignal} signal */
export async function tree(panel, page, signal) {
  if (panel.querySelector("[role=tree]")) return;
  const root = element("div", { role: "tree", "aria-label": "User threads by creator" });
  panel.replaceChildren(note("Click a thread to focus it; the arrow opens what it created."), root);
  await branch(root, "none", 0, 1, page, signal);
  if (!root.hasChildNodes()) root.append(note("This trace has no user threads."));
}

/** @param {HTMLElement} place @param {string} parent @param {number} offset @param {number} level @param {import("../main.js").Page} page @param {AbortSignal} [signal] */
async function branch(place, parent, offset, level, page, signal) {
  const answer = await api.ask("tree", { parent, offset, limit: PAGE }, signal);
  for (const row of answer.threads) {
    const open = element("button", { type: "button", "aria-label": "Open" }, row.children ? "▸" : "·");
    const name = element("button", { type: "button" }, printable(`${row.label}  `), length(row.busy, page.trace.tick_hz), row.children ? ` · ${row.children} created` : "");
    const children = element("div", { role: "group" });
    const item = element("div", { role: "treeitem", "aria-level": String(level), ...(row.children ? { "aria-expanded": "false" } : {}) }, open, name, children);
    item.style.paddingLeft = level > 1 ? "18px" : "0";
    name.addEventListener("click", () => page.focusRow(row));
    if (!row.children) open.setAttribute("disabled", "");
    open.addEventListener("click", () => {
      const isOpen = children.hasChildNodes();
      children.replaceChildren();
      open.textContent = isOpen ? "▸" : "▾";
      item.setAttribute("aria-expanded", String(!isOpen));
      if (!isOpen) branch(children, row.key, 0, level + 1, page).catch(page.fail);
    });
    place.append(item);
  }
  if (offset + answer.threads.length < answer.total) {
    const more = element("button", { type: "button" }, `${answer.total - offset - answer.threads.length} more`);
    more.addEventListener("click", () => { more.remove(); branch(place, parent, offset + PAGE, level, page).catch(page.fail); });
    place.append(more);
  }
}
