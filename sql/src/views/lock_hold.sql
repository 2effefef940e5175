-- One row is a time that a lock was held, where that was recorded.
-- ts_tick: When the lock was acquired.
-- ts_ns: When the lock was acquired, in nanoseconds since the first event.
-- dur_tick: The same as hold_tick; with it a row is an interval for overlap and merged.
-- dur_ns: The same as hold_ns.
SELECT ts_tick + wait_tick AS ts_tick, ts_ns + wait_ns AS ts_ns, hold_tick, hold_ns, thread, lwp, cpu, object, kind, contended,
       call_site, end_reason, hold_tick AS dur_tick, hold_ns AS dur_ns
FROM locks
WHERE hold_tick IS NOT NULL
