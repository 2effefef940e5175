-- Perfetto's slices of threads, with the thread and process: those of user threads, which Perfetto does not know, among them.
-- id: As in slice.
-- ts: Its begin in nanoseconds since the first event.
-- dur: Its length in nanoseconds; NULL if it did not end.
-- track_id: The track, as in thread_track.
-- category: span, function or syscall.
-- name: What it is called, as in slice.
-- depth: How many slices of its track are around it.
-- parent_id: The id of the slice directly around it, as in slice; NULL if there is none.
-- utid: The LWP or user thread, as in thread.
-- tid: The tid of the LWP; NULL for a user thread.
-- thread: The user thread; NULL for an LWP.
-- thread_name: The name of the LWP or user thread.
-- is_main_thread: 1 if it is the first LWP of its process, else 0.
-- upid: Its process, as in process.
-- pid: Its process.
-- process_name: The name of its process.
-- ts_tick: Its begin.
-- dur_tick: Its length; NULL if it did not end.
SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, t.track_id AS utid, t.tid, t.thread, t.name AS thread_name,
       CAST(coalesce(t.tid = t.pid, false) AS BIGINT) AS is_main_thread, t.pid AS upid, t.pid, p.name AS process_name, s.ts_tick, s.dur_tick
FROM slice AS s
JOIN (
  SELECT CAST(lwp AS BIGINT) AS track_id, lwp AS tid, CAST(NULL AS BIGINT) AS thread, name, pid
  FROM lwps
  UNION ALL
  SELECT thread + 4294967296 AS track_id, CAST(NULL AS INT) AS tid, thread, name, pid
  FROM threads
) AS t ON s.track_id = t.track_id
LEFT JOIN processes AS p ON t.pid = p.pid
