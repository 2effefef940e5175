-- One row is a time that an LWP was on no CPU, and why: runnable, sleeping, disk-sleep, idle, stopped, or off-cpu (unknown why).
SELECT ts_tick, ts_ns, dur_tick, dur_ns, lwp, state, cpu, end_reason
FROM lwp_states
WHERE state NOT IN ('running', 'exited', 'unknown')
