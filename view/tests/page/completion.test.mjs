import assert from "node:assert/strict";
import { test } from "node:test";

import { completion } from "../../web/panels/completion.js";

const table = (name, ...columns) => ({ name, columns: columns.map((name) => ({ name })) });
const names = (...more) => ({ tables: [table("locks", "call_site"), table("thread_states", "state"), ...more], functions: ["thread_state_times"] });
const found = (query, known = names()) => completion(query, query, known)?.found ?? [];

test("a word is completed as far as all names that begin with it agree", () => {
  assert.deepEqual(completion("SELECT * FROM thread_s", "SELECT * FROM thread_s", names()),
    { begun: "thread_s", common: "thread_state", found: ["thread_state_times", "thread_states"] });
  assert.equal(completion("SELECT 1 ", "SELECT 1 ", names()), null);
  assert.equal(completion("SELECT zz", "SELECT zz", names()), null);
});

test("columns are those of the tables that the query mentions", () => {
  assert.deepEqual(found("SELECT * FROM locks WHERE call_"), ["call_site"]);
  assert.deepEqual(found("SELECT * FROM blocks, locks_of, locks2 WHERE call_"), []);
  assert.deepEqual(found("SELECT * FROM locks2, locks WHERE call_"), ["call_site"]);
});

test("names of any characters are no patterns", () => {
  const odd = ["[z", "a(b", "a*", "+x", "", "\\", "a.b", "x|y", "("].map((name) => table(name, `of_${name}`));
  assert.deepEqual(found("SELECT call_", names(...odd)), []);
  assert.deepEqual(found("SELECT * FROM locks WHERE call_", names(...odd)), ["call_site"]);
  assert.deepEqual(found("SELECT * FROM \"[z\" WHERE of_", names(...odd)), ["of_[z"]);
  assert.deepEqual(found("SELECT * FROM axb WHERE of_", names(...odd)), [], "a point is a point");
});
