// @ts-check
// What is asked about the window once it has come to rest: the way of the focused row, interrupts, queues, disagreements.

/** Too many to be told apart are not drawn: they would be a bar. */
const LIMIT = 2000;

/** @param {import("./timeline.js").Timeline} timeline @param {AbortSignal} signal */
export function askAside(timeline, signal) {
  const { focus, page, source } = timeline;
  const { from, to } = timeline.navigation.window;
  /** @param {string} question @param {Record<string, string | number>} parameters @param {(answer: any) => void} use */
  const ask = (question, parameters, use) => {
    page.asking++;
    source.ask(question, { from, to, limit: LIMIT, ...parameters }, signal).then((answer) => { use(answer); page.redraw(); }, page.fail).finally(() => { page.asking--; });
  };
  if (focus.row && focus.row.kind !== "cpu") {
    const { key } = focus.row;
    ask("life", { key, limit: 3000 }, (life) => {
      focus.life = life.more ? { intervals: [], wakeups: life.wakeups.slice(0, 500) } : life;
      // It lists the wakeups.
      if (page.panelName === "details" && page.active === timeline && life.wakeups.length > 0) page.refreshPanel();
    });
    ask("spans", { key }, ({ spans }) => {
      focus.spans = spans;
      const deepest = spans.reduce((/** @type {number} */ most, /** @type {any} */ span) => Math.max(most, span.depth + 1), 0);
      timeline.rows.spans = Math.min(deepest, 12);
    });
  } else {
    focus.life = null;
    focus.spans = [];
    timeline.rows.spans = 0;
  }
  /** @param {string} id @param {Record<string, string>} parameters */
  const queue = (id, parameters) => ask("counters", parameters, ({ more, points }) => {
    if (more) focus.queues.delete(id); else focus.queues.set(id, points);
  });
  for (const key of timeline.visible.filter((key) => key.startsWith("cpu:"))) {
    const cpu = key.slice(4);
    ask("interrupts", { cpu }, ({ more, interrupts }) => {
      if (more) focus.interrupts.delete(key); else focus.interrupts.set(key, interrupts);
    });
    queue(key, { kind: "run-queue", id: cpu });
  }
  for (const id of timeline.groups.filter((id) => /^pid:\d+$/.test(id))) queue(id, { kind: "ready-queue", id: id.slice(4) });
  ask("disagreements", {}, ({ disagreements }) => { focus.disagreements = disagreements; });
}
