-- Perfetto's table of kernel threads: one row is an LWP. `utid` is its tid, as in sched_slice; `upid` its process.
-- id: The tid.
-- utid: The tid, as in sched_slice.
-- tid: The tid.
-- upid: Its process.
-- start_ts: Its begin in nanoseconds since the first event.
-- end_ts: Its end; NULL if it did not end.
-- is_main_thread: 1 if it is the first of its process, else 0.
SELECT lwp AS id, lwp AS utid, lwp AS tid, name, pid AS upid, ts_ns AS start_ts, ts_ns + dur_ns AS end_ts,
       CAST(lwp = pid AS BIGINT) AS is_main_thread
FROM lwps
