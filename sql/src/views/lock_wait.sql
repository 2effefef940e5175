-- One row is a wait for a lock, and what held it when the wait began.
-- dur_tick: The same as wait_tick, or 0 if that is not known; with it a row is an interval for overlap and merged.
-- dur_ns: The same as wait_ns, or 0.
SELECT ts_tick, ts_ns, wait_tick, wait_ns, thread, lwp, cpu, object, kind, holder, holder_lwp, call_site, end_reason,
       coalesce(wait_tick, 0) AS dur_tick, coalesce(wait_ns, 0) AS dur_ns
FROM locks
WHERE contended
