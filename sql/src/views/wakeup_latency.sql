-- One row is a wakeup with the time until what was woken ran: an LWP on a CPU (KERN), a user thread on an LWP (USER).
SELECT ts_tick, ts_ns, level, latency_tick, latency_ns, lwp, thread, cpu, target_cpu, context, waker_lwp, waker_thread
FROM wakeups
WHERE latency_tick IS NOT NULL
