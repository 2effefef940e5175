-- Perfetto's table of kernel threads: one row is an LWP. `utid` is its tid, as in sched_slice; `upid` its process.
SELECT lwp AS id, lwp AS utid, lwp AS tid, name, pid AS upid, ts_ns AS start_ts, ts_ns + dur_ns AS end_ts,
       lwp = pid AS is_main_thread
FROM lwps
