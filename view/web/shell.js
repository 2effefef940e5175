// @ts-check
// Commands that are copied from the page: words as a shell reads them. The server quotes its own commands alike
// (view/src/api/measure.rs).

/** A word, quoted for a shell: none of it is expanded. @param {string} text */
export function quoted(text) {
  return /^[A-Za-z0-9/._\-+:,@%=]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command that answers a query of a super-trace. @param {string} path @param {string} query */
export function sqlCommand(path, query) {
  // A query that begins with a comment is no option.
  return `sigmund sql ${quoted(path)} ${query.startsWith("-") ? "-- " : ""}${quoted(query)}`;
}
