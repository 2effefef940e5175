-- Perfetto's tracks of counters of processes: lengths of ready queues.
-- id: The process, as in counter.
-- name: ready-queue.
-- upid: The process.
SELECT CAST(pid AS BIGINT) AS id, 'ready-queue' AS name, pid AS upid
FROM processes
