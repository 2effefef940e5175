import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { quoted, sqlCommand } from "../../web/shell.js";

/** The words that a shell makes of a text, each before a NUL. */
const words = (text) => execFileSync("sh", ["-c", `printf '%s\\0' ${text}`], { encoding: "utf8" }).split("\0").slice(0, -1);

test("a shell reads a quoted word as it was", () => {
  for (const text of ["plain/path.supertrace", "", "with space", "it's", "$(touch pwned)", "a\nb", "`x`", "a!b", '"', "\\", "plain\n"]) {
    assert.deepEqual(words(quoted(text)), [text]);
  }
  assert.equal(quoted("plain/path.supertrace"), "plain/path.supertrace");
});

test("the command of a query has the path and the query, whatever they contain", () => {
  for (const path of ["/t/a.supertrace", "/t/dir $(touch pwned)/it's a b.supertrace"]) {
    for (const query of ["SELECT name FROM spans WHERE name != '$HOME' AND kind <> \"`x`\"", "SELECT\n1"]) {
      assert.deepEqual(words(sqlCommand(path, query)), ["sigmund", "sql", path, query]);
    }
    assert.deepEqual(words(sqlCommand(path, "-- all\nSELECT 1")), ["sigmund", "sql", path, "--", "-- all\nSELECT 1"]);
  }
});
