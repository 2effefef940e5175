-- Perfetto's slices: spans and functions, system calls, interrupts. `track_id` is that of thread_track; of an interrupt it is -1 less its CPU. There are no ids and no parents.
SELECT ts_ns AS ts, dur_ns AS dur, coalesce(thread + 4294967296, CAST(lwp AS BIGINT)) AS track_id,
       CAST(kind AS VARCHAR) AS category, name, depth, ts_tick, dur_tick
FROM spans
UNION ALL
SELECT ts_ns AS ts, dur_ns AS dur, CAST(lwp AS BIGINT) AS track_id, 'syscall' AS category, CAST(name AS VARCHAR) AS name,
       CAST(0 AS INT) AS depth, ts_tick, dur_tick
FROM syscalls
UNION ALL
SELECT ts_ns AS ts, dur_ns AS dur, -1 - CAST(cpu AS BIGINT) AS track_id, CAST(kind AS VARCHAR) AS category,
       CAST(name AS VARCHAR) AS name, depth, ts_tick, dur_tick
FROM interrupts
