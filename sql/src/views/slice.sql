-- Perfetto's slices: spans and functions, system calls, interrupts. `track_id` is that of thread_track; of an interrupt it is -1 less its CPU.
-- id: A number of its own, which says nothing about the order; the same for slices of one track that begin at one instant and depth.
-- ts: Its begin in nanoseconds since the first event.
-- dur: Its length in nanoseconds; NULL if it did not end.
-- track_id: The track, as in thread_track; of an interrupt -1 less its CPU.
-- category: span, function, syscall, or the kind of an interrupt.
-- name: What it is called; a system call has sys_ before its name, as in Perfetto.
-- depth: How many slices of its track are around it.
-- parent_id: The id of the slice directly around it; NULL if there is none.
-- ts_tick: Its begin.
-- dur_tick: Its length; NULL if it did not end.
SELECT row_id(coalesce(thread + 4294967296, CAST(lwp AS BIGINT)), ts_tick, CAST(depth AS BIGINT)) AS id,
       ts_ns AS ts, dur_ns AS dur, coalesce(thread + 4294967296, CAST(lwp AS BIGINT)) AS track_id,
       CAST(kind AS VARCHAR) AS category, name, depth,
       CASE WHEN depth > 0 THEN
         row_id(coalesce(thread + 4294967296, CAST(lwp AS BIGINT)), parent_tick, CAST(depth - 1 AS BIGINT))
       END AS parent_id,
       ts_tick, dur_tick
FROM spans
UNION ALL
-- An LWP without user threads has spans of depth 0 on the track of its system calls.
SELECT row_id(CAST(lwp AS BIGINT), ts_tick, CAST(-1 AS BIGINT)) AS id,
       ts_ns AS ts, dur_ns AS dur, CAST(lwp AS BIGINT) AS track_id, 'syscall' AS category, 'sys_' || CAST(name AS VARCHAR) AS name,
       CAST(0 AS INT) AS depth, CAST(NULL AS BIGINT) AS parent_id, ts_tick, dur_tick
FROM syscalls
UNION ALL
SELECT row_id(-1 - CAST(cpu AS BIGINT), ts_tick, CAST(depth AS BIGINT)) AS id,
       ts_ns AS ts, dur_ns AS dur, -1 - CAST(cpu AS BIGINT) AS track_id, CAST(kind AS VARCHAR) AS category,
       CAST(name AS VARCHAR) AS name, depth,
       CASE WHEN depth > 0 THEN row_id(-1 - CAST(cpu AS BIGINT), parent_tick, CAST(depth - 1 AS BIGINT)) END AS parent_id,
       ts_tick, dur_tick
FROM interrupts
