-- One row is a time that a lock was held, where that was recorded.
-- ts_tick: When the lock was acquired.
-- ts_ns: When the lock was acquired, in nanoseconds since the first event.
SELECT ts_tick + wait_tick AS ts_tick, ts_ns + wait_ns AS ts_ns, hold_tick, hold_ns, thread, lwp, object, kind, contended,
       call_site, end_reason
FROM locks
WHERE hold_tick IS NOT NULL
