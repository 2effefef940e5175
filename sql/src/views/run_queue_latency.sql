-- One row is a time that an LWP waited for a CPU: after a wakeup, or after a switch that left it runnable (voluntary by sched_yield, involuntary, unknown where its system calls are not traced).
SELECT ts_tick, ts_ns, 'wakeup' AS kind, latency_tick, latency_ns, lwp, thread, target_cpu AS cpu, waker_lwp, waker_thread
FROM wakeups
WHERE level = 'KERN' AND latency_tick IS NOT NULL
UNION ALL
SELECT ts_tick, ts_ns,
       CASE left_by WHEN 'sched-yield' THEN 'voluntary' WHEN 'preempted' THEN 'involuntary' ELSE 'unknown' END AS kind,
       dur_tick AS latency_tick, dur_ns AS latency_ns, lwp, CAST(NULL AS BIGINT) AS thread, cpu,
       CAST(NULL AS INT) AS waker_lwp, CAST(NULL AS BIGINT) AS waker_thread
FROM (SELECT ts_tick, ts_ns, dur_tick, dur_ns, lwp, cpu, CAST(state AS VARCHAR) AS state,
             CAST(end_reason AS VARCHAR) AS end_reason,
             lag(CAST(state AS VARCHAR)) OVER (PARTITION BY lwp ORDER BY ts_tick, dur_tick) AS state_before,
             lag(CAST(end_reason AS VARCHAR)) OVER (PARTITION BY lwp ORDER BY ts_tick, dur_tick) AS left_by
      FROM lwp_states) AS states
WHERE state = 'runnable' AND state_before = 'running' AND end_reason = 'dispatched'
