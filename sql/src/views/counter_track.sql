-- Perfetto's tracks of counters: those of cpu_counter_track and process_counter_track.
-- id: As in counter.
-- name: run-queue or ready-queue.
-- cpu: The CPU of a run queue.
-- upid: The process of a ready queue.
SELECT id, name, cpu, CAST(NULL AS INT) AS upid
FROM cpu_counter_track
UNION ALL
SELECT id, name, CAST(NULL AS INT) AS cpu, upid
FROM process_counter_track
