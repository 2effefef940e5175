-- One row is a time that an LWP was on no CPU, and why: runnable, sleeping, disk-sleep, idle, stopped, or off-cpu (unknown why); and the system call it was in. LWP 0, idle CPUs, is left out.
-- ts_tick: When it left the CPU, or when its state off the CPU changed.
-- ts_ns: The same, in nanoseconds since the first event.
-- dur_tick: How long; NULL if it never ended.
-- dur_ns: How long, in nanoseconds.
-- lwp: The LWP.
-- state: runnable, sleeping, disk-sleep, idle, stopped or off-cpu.
-- cpu: The CPU that it left; of a runnable LWP, the CPU whose run queue it was put in.
-- syscall: The system call it was in; NULL if none is known.
-- end_reason: What ended it.
WITH stays_and_calls AS (
  SELECT ts_tick, lwp, 1 AS is_stay, ts_ns, dur_tick, dur_ns, CAST(state AS VARCHAR) AS state, cpu,
         CAST(end_reason AS VARCHAR) AS end_reason, CAST(NULL AS BIGINT) AS call_end, CAST(NULL AS VARCHAR) AS call
  FROM lwp_states
  WHERE state NOT IN ('running', 'exited', 'unknown') AND lwp <> 0
  UNION ALL
  -- Of the system calls, those that may have left a CPU. Those of one LWP do not overlap.
  SELECT ts_tick, lwp, 0, CAST(NULL AS BIGINT), dur_tick, CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR), CAST(NULL AS INT),
         CAST(NULL AS VARCHAR), ts_tick + dur_tick,
         coalesce(CAST(name AS VARCHAR), 'syscall ' || CAST(number AS VARCHAR))
  FROM syscalls
  WHERE (off_cpu_tick IS DISTINCT FROM 0) OR end_reason <> 'returned'
),
-- In the order of time, each call begins a group of rows of its LWP. (last_value IGNORE NULLS would do, but a window function
-- with it does not reach the executors of a cluster.)
grouped AS (
  SELECT *, count(call) OVER (PARTITION BY lwp ORDER BY ts_tick, is_stay ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS calls
  FROM stays_and_calls
),
with_last_call AS (
  SELECT *, first_value(call_end) OVER last_call AS last_end, first_value(call) OVER last_call AS last_call
  FROM grouped
  WINDOW last_call AS (PARTITION BY lwp, calls ORDER BY ts_tick, is_stay ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT ts_tick, ts_ns, dur_tick, dur_ns, lwp, state, cpu, CASE WHEN last_end > ts_tick THEN last_call END AS syscall, end_reason
FROM with_last_call
WHERE is_stay = 1
