// Memory and CPU time of processes, as /proc has them.

import { readFileSync, readdirSync } from "node:fs";

/** Megabytes of a process, by a name of /proc/PID/status. */
export const megabytes = (pid, name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

/** Megabytes of its own that the largest renderer of a browser has: the page's. */
export function megabytesOf(pid) {
  const own = (child) => { try { return readFileSync(`/proc/${child}/cmdline`, "utf8").includes("--type=renderer") ? megabytes(child, "RssAnon") : 0; } catch { return 0; } };
  const parents = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const parentOf = (child) => { try { return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${child}/stat`, "utf8"))?.[1]); } catch { return 0; } };
  const isOf = (child) => { for (let at = Number(child); at > 1; at = parentOf(at)) if (at === pid) return true; return false; };
  return Math.max(0, ...parents.filter(isOf).map(own));
}

/** Seconds of CPU time of a process so far. A tick of /proc/PID/stat is 10 ms on Linux. */
export function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
