-- Perfetto's table of threads: one row is an LWP, or a user thread, which Perfetto does not know.
-- id: As utid.
-- utid: The tid of an LWP, as in sched_slice; the number of a user thread plus 2^32, as in thread_slice.
-- tid: The tid of an LWP; NULL for a user thread.
-- name: The name of the LWP or user thread.
-- thread: The user thread; NULL for an LWP.
-- upid: Its process.
-- start_ts: Its begin in nanoseconds since the first event.
-- end_ts: Its end; NULL if it did not end.
-- is_main_thread: 1 if it is the first LWP of its process, else 0.
SELECT CAST(lwp AS BIGINT) AS id, CAST(lwp AS BIGINT) AS utid, lwp AS tid, name, pid AS upid, ts_ns AS start_ts,
       ts_ns + dur_ns AS end_ts, CAST(lwp = pid AS BIGINT) AS is_main_thread, CAST(NULL AS BIGINT) AS thread
FROM lwps
UNION ALL
SELECT thread + 4294967296 AS id, thread + 4294967296 AS utid, CAST(NULL AS INT) AS tid, name, pid AS upid, ts_ns AS start_ts,
       ts_ns + dur_ns AS end_ts, CAST(0 AS BIGINT) AS is_main_thread, thread
FROM threads
