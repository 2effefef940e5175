-- Perfetto's tracks of counters of CPUs: lengths of run queues.
-- id: -1 less the CPU, as in counter.
-- name: run-queue.
-- cpu: The CPU.
SELECT -1 - CAST(cpu AS BIGINT) AS id, 'run-queue' AS name, cpu
FROM cpus
