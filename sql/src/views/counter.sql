-- Perfetto's counters: lengths of run queues (`track_id` is -1 less the CPU) and of ready queues (the pid).
SELECT ts_ns AS ts, coalesce(-1 - CAST(cpu AS BIGINT), CAST(pid AS BIGINT)) AS track_id, CAST(value AS DOUBLE) AS value,
       CAST(kind AS VARCHAR) AS name, ts_tick
FROM counters
