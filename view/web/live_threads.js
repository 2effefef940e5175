// @ts-check
// Who waits for whom: a forest, and cycles, which are deadlocks.

/** @typedef {{thread: number | string, name: string | null, state: string, lwp: number | null, waits_for: string | null, on: string | null,
 *   held_by: number | string | null}} Thread */
/** @typedef {{thread: Thread, waiting: Branch[]}} Branch */

/** Threads under the one that they wait for. A thread that waits for nobody known is a root, and so is each of a cycle.
 * @param {Thread[]} threads @returns {{roots: Branch[], cycles: Thread[][]}} */
export function waits(threads) {
  const known = new Map(threads.map((thread) => [String(thread.thread), thread]));
  const holder = (/** @type {Thread} */ thread) => (thread.held_by === null || thread.held_by === undefined ? undefined : known.get(String(thread.held_by)));
  /** @type {Map<Thread, Branch>} */
  const branches = new Map(threads.map((thread) => [thread, { thread, waiting: [] }]));
  const cycles = cyclesOf(threads, holder);
  const inCycle = new Set(cycles.flat());
  /** @type {Branch[]} */
  const roots = [];
  for (const thread of threads) {
    const branch = /** @type {Branch} */ (branches.get(thread));
    const of = holder(thread);
    if (of && !inCycle.has(thread)) branches.get(of)?.waiting.push(branch); else roots.push(branch);
  }
  return { roots, cycles };
}

/** Each thread waits for at most one: from each, the way is followed until it meets itself.
 * @param {Thread[]} threads @param {(thread: Thread) => Thread | undefined} holder */
function cyclesOf(threads, holder) {
  /** @type {Map<Thread, number>} */
  const seen = new Map();
  /** @type {Thread[][]} */
  const cycles = [];
  threads.forEach((start, walk) => {
    /** @type {Thread[]} */
    const way = [];
    let at = /** @type {Thread | undefined} */ (start);
    while (at && !seen.has(at)) {
      seen.set(at, walk);
      way.push(at);
      at = holder(at);
    }
    // Met on this very walk: from there on it is a cycle.
    if (at && seen.get(at) === walk && way.includes(at)) cycles.push(way.slice(way.indexOf(at)));
  });
  return cycles;
}

/** How many threads are in each state, the most first. @param {Thread[]} threads @returns {[string, number][]} */
export function byState(threads) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { state } of threads) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}
