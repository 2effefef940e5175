-- Perfetto's counters: lengths of run queues (`track_id` is -1 less the CPU) and of ready queues (the pid).
-- id: A number of its own, which says nothing about the order.
-- ts: When it changed, in nanoseconds since the first event.
-- track_id: -1 less the CPU of a run queue; the process of a ready queue.
-- value: Its value from then on.
-- name: run-queue or ready-queue.
SELECT row_id(coalesce(-1 - CAST(cpu AS BIGINT), CAST(pid AS BIGINT)), ts_tick, value) AS id,
       ts_ns AS ts, coalesce(-1 - CAST(cpu AS BIGINT), CAST(pid AS BIGINT)) AS track_id, CAST(value AS DOUBLE) AS value,
       CAST(kind AS VARCHAR) AS name, ts_tick
FROM counters
