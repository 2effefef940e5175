// The panels on a trace of examples/server (spans, locks, system calls): `node panels.mjs URL FOLDER`.

import assert from "node:assert/strict";

import { begin } from "./harness.mjs";

const test = await begin();
const { page, state, settled, step, text, ask } = test;
const length = (window) => window.to - window.from;
const panelHas = (pattern) => page.until(`${pattern}.test(document.getElementById("panel").innerText)`);
const cells = (selector) => page.evaluate(`[...document.querySelectorAll(${JSON.stringify(`${selector} tbody tr`)})].map((line) => [...line.cells].map((cell) => cell.innerText))`);
const sql = (query) => page.evaluate(`fetch("api/sql", { method: "POST", body: JSON.stringify({ query: ${JSON.stringify(query)} }), headers: { Authorization: "Bearer " + sessionStorage.getItem("sigmund-token") } }).then((r) => r.json())`);

await test.run(async () => {
  const whole = await state();
  const trace = await ask("trace");
  const all = async () => { await page.press("Escape"); await page.press("0"); await settled(); };
  // The thread that waits longest.
  const [waiting] = (await ask("rows?kind=thread&sort=blocked&limit=1")).rows;

  await step("statistics of a selection: culprits, events, system calls and locks, beside the states", async () => {
    await test.panel("selection");
    await panelHas("/--states/");
    for (const name of ["culprits", "events", "syscalls", "locks"]) await test.click(`#statistics-${name} summary`);
    await page.until("document.querySelectorAll('#panel details table').length === 4", 40);
    const { from, to } = whole;
    const first = BigInt(trace.first_tick);
    const events = await sql(`SELECT name, count(*) AS n FROM events WHERE ts_tick >= ${first + BigInt(from)} AND ts_tick < ${first + BigInt(to)} GROUP BY name`);
    const shown = new Map((await cells("#statistics-events")).map(([, name, count]) => [name, count]));
    assert.equal(shown.size, new Set(events.rows.map(([name]) => name)).size);
    for (const [name, count] of events.rows) assert.equal(shown.get(name), String(count), name);
    const calls = await sql("SELECT name, count(*) AS n FROM syscalls GROUP BY name");
    assert.deepEqual((await cells("#statistics-syscalls")).map(([name, count]) => [name, count]).sort(), calls.rows.map(([name, count]) => [name, String(count)]).sort());
    const locks = await ask(`measure?name=locks&from=${from}&to=${to}`);
    assert.ok(locks.rows.length > 0);
    assert.equal((await cells("#statistics-locks")).length, locks.rows.length);
    const states = await ask(`measure?name=states&by=pattern&from=${from}&to=${to}`);
    const culprit = states.columns.findIndex(({ name }) => name === "culprit");
    assert.equal((await cells("#statistics-culprits")).length, states.rows.filter((row) => row[culprit] !== null).length);
  });

  await step("they follow the focused row and the window, and stay open", async () => {
    await page.press("w");
    await settled();
    // The address is edited.
    await page.evaluate(`location.hash += "&focus=${waiting.key}"`);
    await page.until(`window.sigmund.state().focus === ${JSON.stringify(waiting.key)}`);
    await settled();
    await panelHas(`/--thread ${waiting.key.split(":")[1]} --from/`);
    await page.until("document.querySelectorAll('#panel details[open] table').length === 4", 40);
    const now = await state();
    const first = BigInt(trace.first_tick);
    const [[count]] = (await sql(`SELECT count(*) AS n FROM events WHERE thread = ${waiting.key.split(":")[1]} AND ts_tick >= ${first + BigInt(now.from)} AND ts_tick < ${first + BigInt(now.to)}`)).rows;
    const sum = (await cells("#statistics-events")).reduce((sum, row) => sum + Number(row[2]), 0);
    assert.equal(sum, count);
    await all();
    for (const name of ["culprits", "events", "syscalls", "locks"]) await test.click(`#statistics-${name} summary`);
  });

  await step("the lengths of a span: bars and a cumulative share, which lead to examples", async () => {
    await test.panel("latency");
    await page.until("document.querySelectorAll('#panel input').length === 3");
    await test.fill("#panel input:nth-of-type(3)", "request");
    await page.until("document.querySelector('#panel .bars button') && document.getElementById('cdf')");
    const lengths = (await sql("SELECT dur_tick, ts_tick FROM spans WHERE name = 'request' AND end_reason IN ('returned', 'exit') ORDER BY dur_tick, ts_tick DESC")).rows.map(([took, at]) => [Number(took), Number(BigInt(at) - BigInt(trace.first_tick))]);
    assert.ok((await text("#panel")).includes(`${lengths.length} instances`), await text("#panel"));
    const label = await page.evaluate("document.getElementById('cdf').getAttribute('aria-label')");
    const median = lengths[Math.ceil(lengths.length / 2) - 1][0];
    const shown = (ticks) => page.evaluate(`import("./format.js").then(({ length }) => length(${ticks}, ${trace.tick_hz}))`);
    assert.ok(label.includes(`p50 ${await shown(median)},`), `${label}, expected ${median}`);
    assert.ok(label.includes(`longest ${await shown(lengths.at(-1)[0])}`), label);
    const counts = await page.evaluate("[...document.querySelectorAll('#panel .bars button')].map((bar) => Number(/^\\d+/.exec(bar.title)[0]))");
    assert.equal(counts.reduce((a, b) => a + b, 0), lengths.length, "each is in one bar");
    await page.evaluate("[...document.querySelectorAll('#panel .bars button')].at(-1).click()");
    await settled();
    const [took, at] = lengths.at(-1);
    let now = await state();
    assert.deepEqual(now.range, { from: at, to: at + took });
    assert.ok(now.from <= at && now.to >= at + took && length(now) < 2 * took, "the window shows it");
    assert.ok(now.focus.startsWith("thread:"), now.focus);
    await all();
    await page.until("document.getElementById('cdf')");
    const box = await test.box("#cdf");
    await page.evaluate("document.getElementById('cdf').scrollIntoView()");
    const seen = await test.box("#cdf");
    await page.click(seen.left + box.width - 2, seen.top + 20);
    await settled();
    now = await state();
    assert.equal(now.range.to - now.range.from, lengths.findLast(([took]) => took <= now.range.to - now.range.from)[0]);
    await all();
    await test.screenshot("latency.png");
    await test.fill("#panel input:nth-of-type(3)", "");
  });

  await step("why it was slow: the median's braid above the slowest one's", async () => {
    await test.panel("measures");
    await page.until("document.querySelector('#panel select')");
    // Not asked before that is named: the server would refuse, which the console would show.
    for (const [measure, missing] of [["reactivity", "Name two events"], ["critical-path", "Focus a thread or an LWP"], ["explain", "Name a span"]]) {
      await test.fill("#panel select", measure);
      await page.until(`document.getElementById('panel').textContent.includes('${missing}')`);
    }
    await test.fill("#panel input[placeholder='span or lock']", "request");
    await page.until("document.querySelector('#braid-slowest canvas')", 40);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const answer = await ask("braids?subject=request");
    const sum = (name) => answer.rows.filter((row) => row[0] === name).reduce((sum, row) => sum + row[2], 0);
    const lengths = (await sql("SELECT dur_tick FROM spans WHERE name = 'request' AND end_reason IN ('returned', 'exit') ORDER BY dur_tick")).rows.map(([took]) => Number(took));
    assert.ok(lengths.includes(sum("median")) && lengths.includes(sum("slowest")) && sum("median") <= sum("slowest"));
    const bands = await ask("measure?name=explain&subject=request");
    const duration = (band) => bands.rows.find((row) => row[0] === band && row[1] === "duration");
    assert.ok(sum("slowest") >= duration("99-100")[7] && sum("median") >= duration("0-50")[7], "each is the longest of its band");
    const tops = await page.evaluate("['median', 'slowest'].map((name) => document.getElementById(`braid-${name}`).getBoundingClientRect().top)");
    assert.ok(tops[0] < tops[1], "the median is above");
    const painted = await page.evaluate(`["median", "slowest"].map((name) => { const c = document.querySelector("#braid-" + name + " canvas"); const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]); return seen.size; })`);
    assert.ok(painted.every((colours) => colours > 4), `${painted}`);
    await page.evaluate("document.documentElement.style.setProperty('--panels', '520px')");
    await settled();
    await test.screenshot("braids.png");
    const corner = () => page.evaluate("(() => { const c = document.querySelector('#braid-slowest canvas'); return c && [...c.getContext('2d').getImageData(c.width - 3, 1, 1, 1).data].slice(0, 3).join(); })()");
    const light = await corner();
    await page.media({ "prefers-color-scheme": "dark" });
    await page.until("document.querySelector('#braid-slowest canvas')");
    for (let turn = 0; turn < 60 && [light, null].includes(await corner()); turn++) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.notEqual(await corner(), light, "drawn again in the dark");
    await page.media({});
    for (let turn = 0; turn < 60 && await corner() !== light; turn++) await new Promise((resolve) => setTimeout(resolve, 100));
    await settled();
    await test.click("#braid-slowest canvas");
    await settled();
    const now = await state();
    assert.equal(now.range.to - now.range.from, sum("slowest"));
    assert.ok(now.chain > 0);
    await page.evaluate("document.documentElement.style.removeProperty('--panels')");
    await all();
    await test.fill("#panel input[placeholder='span or lock']", "");
    await test.fill("#panel select", "states");
    await panelHas("/--states/");
  });

  await step("SQL completes tables, functions and columns, and its rows with ts_tick become marks", async () => {
    await test.panel("sql");
    await page.until("document.querySelector('#panel textarea')");
    const complete = async (typed) => {
      await page.evaluate(`(() => { const a = document.querySelector("#panel textarea"); a.focus(); a.value = ${JSON.stringify(typed)}; a.setSelectionRange(a.value.length, a.value.length); })()`);
      await page.press("Tab");
      await page.until("!document.querySelector('#panel textarea').ariaBusy");
      return page.evaluate("document.querySelector('#panel textarea').value");
    };
    // The first Tab comes before the names that it completes, on any machine.
    assert.equal(await complete("SELECT * FROM thread_st"), "SELECT * FROM thread_state", "as far as the candidates agree");
    assert.match(await text("#panel .note[aria-live]"), /thread_state +thread_states/);
    assert.equal(await complete("SELECT * FROM locks WHERE call_s"), "SELECT * FROM locks WHERE call_site");
    assert.equal(await complete("SELECT * FROM critical_p"), "SELECT * FROM critical_path");
    await complete("SELECT * FROM l");
    assert.match(await text("#panel .note[aria-live]"), /locks/);
    assert.equal(await complete("SELECT zz_nothing"), "SELECT zz_nothing");
    await complete("SELECT ts_tick, name FROM spans WHERE name = 'request' ORDER BY ts_tick LIMIT 7");
    await page.evaluate("document.querySelector('#panel textarea').focus()");
    await page.press("Enter", ["Control"]);
    await page.until("document.querySelectorAll('#panel tbody tr').length === 7");
    assert.equal((await state()).ticks, 7);
    await page.evaluate("document.querySelectorAll('#panel tbody tr')[6].click()");
    const at = (await sql("SELECT ts_tick FROM spans WHERE name = 'request' ORDER BY ts_tick LIMIT 7")).rows.at(-1)[0];
    assert.equal((await state()).tick, Number(BigInt(at) - BigInt(trace.first_tick)));
    await page.evaluate("document.activeElement.blur()");
    await all();
  });

  await step("the listing is filtered by name and by the focused row, and follows the window", async () => {
    await test.panel("listing");
    await page.until("document.querySelector('#events tbody tr')");
    await test.fill("#panel input[type=search]", "^sched_switch");
    await page.until("document.querySelector('#events tbody tr') && [...document.querySelectorAll('#events tbody tr')].every((line) => line.cells[2].innerText === 'sched_switch')");
    await page.evaluate("document.getElementById('scroll').scrollTop = 0");
    await settled();
    const key = (await state()).rows.find((key) => key.startsWith("lwp:"));
    await test.click(`#row-${key.replace(":", "-")}`);
    await settled();
    await page.until(`document.querySelector('#events tbody tr') && [...document.querySelectorAll('#events tbody tr')].every((line) => line.cells[4].innerText.includes(${JSON.stringify(key.split(":")[1])}))`);
    await test.fill("#panel input[type=search]", "");
    await all();
  });

  await step("the tree of creators plots subtrees, as the table of threads has them", async () => {
    await test.panel("tree");
    await page.until("document.querySelector('#living canvas')");
    const opened = await page.evaluate("(() => { const item = document.querySelector('#panel [role=treeitem][aria-expanded]'); item.querySelector('button').click(); return item.innerText; })()");
    const number = /\d+/.exec(opened)[0];
    await page.until("/and what it created/.test(document.querySelector('#living').innerText)");
    const [[count]] = (await sql(`WITH RECURSIVE below AS (SELECT thread FROM threads WHERE thread = ${number} UNION ALL SELECT threads.thread FROM threads JOIN below ON threads.created_by = below.thread) SELECT count(*) FROM below`)).rows;
    assert.ok((await text("#living")).replaceAll("\u202f", "").includes(`${count} user threads`), `${count}: ${await text("#living")}`);
    await all();
  });
  return {};
  // It is this test that reads the canvas.
}, { refused: /willReadFrequently/ });
