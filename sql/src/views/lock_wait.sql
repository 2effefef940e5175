-- One row is a wait for a lock, and what held it when the wait began.
-- dur_tick: The same as wait_tick; with it a row is an interval for overlap and merged.
-- dur_ns: The same as wait_ns.
SELECT ts_tick, ts_ns, wait_tick, wait_ns, thread, lwp, object, kind, holder, holder_lwp, call_site, end_reason,
       wait_tick AS dur_tick, wait_ns AS dur_ns
FROM locks
WHERE contended
