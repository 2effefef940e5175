// @ts-check
// Pages of a listing that is longer than what is shown: loaded at both ends, and dropped at the other one.

/** @typedef {{more: boolean, first: string | null, last: string | null, rows: any[]}} Answer */
/** What changed: rows that came and went at each end. @typedef {{before: number, after: number}} Change */

export class EventPages {
  /** @param {(where: {after?: string, before?: string}) => Promise<Answer>} ask @param {number} most rows that are kept */
  constructor(ask, most) {
    this.ask = ask;
    this.most = most;
    /** Pages in the order of time. @type {Answer[]} */
    this.pages = [];
    this.moreBefore = false;
    this.moreAfter = false;
    /** Both ends load one at a time. @type {Promise<any> | null} */
    this.running = null;
  }

  get rows() {
    return this.pages.flatMap((page) => page.rows);
  }

  /** Begins at an instant, with some rows before it. @param {number} tick */
  async start(tick) {
    const [before, after] = await Promise.all([this.ask({ before: `${tick}:0` }), this.ask({ after: `${tick}:0` })]);
    this.pages = [before, after].filter((page) => page.rows.length > 0);
    [this.moreBefore, this.moreAfter] = [before.more, after.more];
    return before.rows.length;
  }

  /** Loads what comes after the last row. */
  later() {
    return this.once(async () => {
      const last = this.pages.at(-1)?.last;
      if (!this.moreAfter || !last) return;
      const page = await this.ask({ after: last });
      this.moreAfter = page.more;
      if (page.rows.length > 0) this.pages.push(page);
      while (this.count() > this.most && this.pages.length > 2) { this.pages.shift(); this.moreBefore = true; }
    });
  }

  /** Loads what comes before the first row. */
  earlier() {
    return this.once(async () => {
      const first = this.pages[0]?.first;
      if (!this.moreBefore || !first) return;
      const page = await this.ask({ before: first });
      this.moreBefore = page.more;
      if (page.rows.length > 0) this.pages.unshift(page);
      while (this.count() > this.most && this.pages.length > 2) { this.pages.pop(); this.moreAfter = true; }
    });
  }

  count() {
    return this.pages.reduce((sum, page) => sum + page.rows.length, 0);
  }

  /** @param {() => Promise<void>} work @returns {Promise<boolean>} whether it was done; not if another is under way */
  async once(work) {
    if (this.running) return false;
    this.running = work();
    try { await this.running; } finally { this.running = null; }
    return true;
  }
}
