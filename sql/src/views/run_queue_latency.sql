-- One row is a time that an LWP waited for a CPU: after a wakeup, or after a switch that left it runnable (voluntary by sched_yield, involuntary, unknown where its system calls are not traced).
-- ts_tick: When it began to wait.
-- ts_ns: When it began to wait, in nanoseconds since the first event.
-- kind: wakeup, voluntary, involuntary or unknown.
-- latency_tick: How long it waited.
-- latency_ns: How long it waited, in nanoseconds.
-- lwp: The LWP that waited.
-- thread: The user thread that it carried; NULL if none, or after a switch.
-- cpu: The CPU in whose run queue it was.
-- waker_lwp: The LWP that woke it; NULL after a switch.
-- waker_thread: The user thread that woke it.
-- dur_tick: The same as latency_tick; with it a row is an interval for overlap and merged.
-- dur_ns: The same as latency_ns.
SELECT ts_tick, ts_ns, 'wakeup' AS kind, latency_tick, latency_ns, lwp, thread, target_cpu AS cpu, waker_lwp, waker_thread,
       latency_tick AS dur_tick, latency_ns AS dur_ns
FROM wakeups
WHERE level = 'KERN' AND latency_tick IS NOT NULL
UNION ALL
SELECT ts_tick, ts_ns,
       CASE left_by WHEN 'sched-yield' THEN 'voluntary' WHEN 'preempted' THEN 'involuntary' ELSE 'unknown' END AS kind,
       dur_tick AS latency_tick, dur_ns AS latency_ns, lwp, CAST(NULL AS BIGINT) AS thread, cpu,
       CAST(NULL AS INT) AS waker_lwp, CAST(NULL AS BIGINT) AS waker_thread, dur_tick, dur_ns
FROM (SELECT ts_tick, ts_ns, dur_tick, dur_ns, lwp, cpu, CAST(state AS VARCHAR) AS state,
             CAST(end_reason AS VARCHAR) AS end_reason,
             lag(CAST(state AS VARCHAR)) OVER (PARTITION BY lwp ORDER BY ts_tick, dur_tick) AS state_before,
             lag(CAST(end_reason AS VARCHAR)) OVER (PARTITION BY lwp ORDER BY ts_tick, dur_tick) AS left_by
      FROM lwp_states) AS states
WHERE state = 'runnable' AND state_before = 'running' AND end_reason = 'dispatched'
