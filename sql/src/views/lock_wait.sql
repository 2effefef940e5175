-- One row is a wait for a lock, and what held it when the wait began.
SELECT ts_tick, ts_ns, wait_tick, wait_ns, thread, lwp, object, kind, holder, holder_lwp, call_site, end_reason
FROM locks
WHERE contended
