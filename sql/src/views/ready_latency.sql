-- One row is a time that a user thread waited for an LWP: after an unpark, a yield, the end of its quantum, or its creation.
-- ts_tick: When it became ready.
-- ts_ns: When it became ready, in nanoseconds since the first event.
-- kind: unpark, yield, quantum or creation.
-- latency_tick: How long it was ready.
-- latency_ns: How long it was ready, in nanoseconds.
-- thread: The user thread that waited.
-- waker_lwp: The LWP on which it was unparked.
-- waker_thread: The user thread that unparked it.
-- dur_tick: The same as latency_tick; with it a row is an interval for overlap and merged.
-- dur_ns: The same as latency_ns.
SELECT ts_tick, ts_ns, 'unpark' AS kind, latency_tick, latency_ns, thread, waker_lwp, waker_thread,
       latency_tick AS dur_tick, latency_ns AS dur_ns
FROM wakeups
WHERE level = 'USER' AND latency_tick IS NOT NULL
UNION ALL
SELECT ts_tick, ts_ns, CASE WHEN state = 'new' THEN 'creation' ELSE left_by END AS kind,
       dur_tick AS latency_tick, dur_ns AS latency_ns, thread,
       CAST(NULL AS INT) AS waker_lwp, CAST(NULL AS BIGINT) AS waker_thread, dur_tick, dur_ns
FROM (SELECT ts_tick, ts_ns, dur_tick, dur_ns, thread, CAST(state AS VARCHAR) AS state,
             CAST(end_reason AS VARCHAR) AS end_reason,
             lag(CAST(end_reason AS VARCHAR)) OVER (PARTITION BY thread ORDER BY ts_tick, dur_tick) AS left_by
      FROM thread_states) AS states
WHERE end_reason = 'dispatched' AND (state = 'new' OR (state = 'ready' AND left_by IN ('yield', 'quantum')))
