-- Perfetto's table of processes. `upid` is the pid.
-- id: The pid.
-- upid: The pid.
-- parent_upid: The process that created it.
-- start_ts: Its begin in nanoseconds since the first event.
-- end_ts: Its end; NULL if it did not end.
SELECT pid AS id, pid AS upid, pid, name, parent AS parent_upid, ts_ns AS start_ts, ts_ns + dur_ns AS end_ts
FROM processes
