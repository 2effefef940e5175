-- Perfetto's table of processes. `upid` is the pid.
SELECT pid AS id, pid AS upid, pid, name, parent AS parent_upid, ts_ns AS start_ts, ts_ns + dur_ns AS end_ts
FROM processes
