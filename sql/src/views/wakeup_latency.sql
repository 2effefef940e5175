-- One row is a wakeup with the time until what was woken ran: an LWP on a CPU (KERN), a user thread on an LWP (USER).
-- dur_tick: The same as latency_tick; with it a row is an interval for overlap and merged.
-- dur_ns: The same as latency_ns.
SELECT ts_tick, ts_ns, level, latency_tick, latency_ns, lwp, thread, cpu, target_cpu, context, waker_lwp, waker_thread,
       latency_tick AS dur_tick, latency_ns AS dur_ns
FROM wakeups
WHERE latency_tick IS NOT NULL
