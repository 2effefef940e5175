// @ts-check
// What Tab completes in a query: tables, functions, and columns of the tables that the query mentions.

/** @typedef {{tables: {name: string, columns: {name: string}[]}[], functions: string[]}} Names */

/** The names that the word at the end of a text begins: what all of them have in common, and they; null without any.
 * @param {string} before the cursor @param {string} query all of it @param {Names} names */
export function completion(before, query, names) {
  const begun = /[A-Za-z_][\w.]*$/.exec(before)?.[0];
  if (!begun) return null;
  const known = new Set([...names.tables.map((table) => table.name), ...names.functions]);
  for (const table of names.tables) {
    if (mentions(query, table.name)) table.columns.forEach((column) => known.add(column.name));
  }
  const found = [...known].filter((name) => name.startsWith(begun)).sort();
  if (found.length === 0) return null;
  let common = found[0];
  for (const name of found) while (!name.startsWith(common)) common = common.slice(0, -1);
  return { begun, common, found };
}

/** Whether a text has a name that is not a part of a longer one. Names of events are of any characters.
 * @param {string} text @param {string} name */
function mentions(text, name) {
  if (name === "") return false;
  const isOfWord = (/** @type {string | undefined} */ character) => character !== undefined && /\w/.test(character);
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!isOfWord(text[at - 1]) && !isOfWord(text[at + name.length])) return true;
  }
  return false;
}
