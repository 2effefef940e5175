//! The invariants of the tables of states and times: a sentence and a query each.
//!
//! Each query gives one row: `checked`, `broken`, and `first`, which is where it is broken first. `$last_tick` is the
//! end of the trace; intervals without an end are cut there.
//!
//! The kernel reuses its numbers: two LWPs may have had the same tid, one after the other. So sums are compared per
//! number, over all LWPs that had it.

use super::pass::Pass;

/// One invariant.
pub(crate) struct Invariant {
    pub(crate) name: &'static str,
    pub(crate) sentence: &'static str,
    /// The meaning of the number in `first`.
    pub(crate) first_is: &'static str,
    /// Reads the rows one by one, in the order of the files.
    pub(crate) in_file_order: bool,
    /// A cheaper pass that can show that the invariant holds, if there is one.
    pub(crate) pass: Option<Pass>,
    /// Tables that it reads, and that a merge may leave out.
    pub(crate) optional_tables: &'static [&'static str],
    pub(crate) query: &'static str,
}

/// The invariants of events, states, threads and LWPs.
pub(crate) const INVARIANTS: &[Invariant] = &[
    Invariant {
        name: "events-in-order",
        sentence: "Events are sorted by time.",
        first_is: "at tick",
        in_file_order: true,
        pass: Some(Pass::Sorted("SELECT ts_tick FROM raw_events")),
        optional_tables: &[],
        query: "
            WITH with_previous AS (
                SELECT ts_tick,
                       max(ts_tick) OVER (ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) AS previous
                FROM raw_events)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE ts_tick < previous) AS broken,
                   min(ts_tick) FILTER (WHERE ts_tick < previous) AS first
            FROM with_previous",
    },
    Invariant {
        name: "one-lwp-per-cpu",
        sentence: "No CPU runs two LWPs at once.",
        first_is: "at tick",
        in_file_order: false,
        pass: Some(Pass::Disjoint(
            "SELECT CAST(cpu AS BIGINT), ts_tick, coalesce(ts_tick + dur_tick, $last_tick)
             FROM raw_lwp_states WHERE state = 'running' AND cpu IS NOT NULL",
        )),
        optional_tables: &[],
        query: "
            WITH running AS (
                SELECT cpu, ts_tick, coalesce(ts_tick + dur_tick, $last_tick) AS end_tick
                FROM raw_lwp_states
                WHERE state = 'running' AND cpu IS NOT NULL),
            with_previous AS (
                SELECT ts_tick,
                       max(end_tick) OVER (PARTITION BY cpu ORDER BY ts_tick, end_tick
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS taken_until
                FROM running)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE ts_tick < taken_until) AS broken,
                   min(ts_tick) FILTER (WHERE ts_tick < taken_until) AS first
            FROM with_previous",
    },
    Invariant {
        name: "one-cpu-per-lwp",
        sentence: "No LWP runs on two CPUs at once.",
        first_is: "at tick",
        in_file_order: false,
        pass: Some(Pass::Disjoint(
            "SELECT CAST(lwp AS BIGINT), ts_tick, coalesce(ts_tick + dur_tick, $last_tick)
             FROM raw_lwp_states WHERE state = 'running' AND lwp <> 0",
        )),
        optional_tables: &[],
        query: "
            WITH running AS (
                SELECT lwp, ts_tick, coalesce(ts_tick + dur_tick, $last_tick) AS end_tick
                FROM raw_lwp_states
                WHERE state = 'running' AND lwp <> 0),
            with_previous AS (
                SELECT ts_tick,
                       max(end_tick) OVER (PARTITION BY lwp ORDER BY ts_tick, end_tick
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS runs_until
                FROM running)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE ts_tick < runs_until) AS broken,
                   min(ts_tick) FILTER (WHERE ts_tick < runs_until) AS first
            FROM with_previous",
    },
    Invariant {
        name: "one-place-per-thread",
        sentence: "No user thread is active in two places at once.",
        first_is: "at tick",
        in_file_order: false,
        pass: Some(Pass::Disjoint("SELECT thread, ts_tick, ts_tick + dur_tick FROM raw_active")),
        optional_tables: &[],
        query: "
            WITH with_previous AS (
                SELECT ts_tick,
                       max(ts_tick + dur_tick) OVER (PARTITION BY thread ORDER BY ts_tick, dur_tick
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS active_until
                FROM raw_active)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE ts_tick < active_until) AS broken,
                   min(ts_tick) FILTER (WHERE ts_tick < active_until) AS first
            FROM with_previous",
    },
    Invariant {
        name: "states-without-holes",
        sentence: "Each state of a user thread begins when the previous one ends.",
        first_is: "at tick",
        in_file_order: false,
        pass: Some(Pass::Chained(
            "SELECT thread, ts_tick, CASE WHEN state = 'exited' THEN ts_tick ELSE ts_tick + dur_tick END, state = 'exited'
             FROM raw_thread_states",
        )),
        optional_tables: &[],
        query: "
            WITH with_previous AS (
                SELECT ts_tick,
                       row_number() OVER in_time AS place,
                       lag(CAST(state AS VARCHAR)) OVER in_time AS previous_state,
                       lag(ts_tick + dur_tick) OVER in_time AS previous_end
                FROM raw_thread_states
                WINDOW in_time AS (PARTITION BY thread ORDER BY ts_tick, dur_tick NULLS LAST)),
            judged AS (
                -- After an exit, the number belongs to another thread.
                SELECT ts_tick, place > 1 AND previous_state <> 'exited'
                           AND previous_end IS DISTINCT FROM ts_tick AS is_broken
                FROM with_previous)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE is_broken) AS broken,
                   min(ts_tick) FILTER (WHERE is_broken) AS first
            FROM judged",
    },
    Invariant {
        name: "states-sum-to-life",
        sentence: "The states of a user thread sum to its lifetime.",
        first_is: "thread",
        in_file_order: false,
        pass: Some(Pass::SameSums(
            &["SELECT thread, coalesce(dur_tick, $last_tick - ts_tick) FROM raw_thread_states WHERE state <> 'exited'"],
            "SELECT thread, coalesce(dur_tick, $last_tick - ts_tick) FROM raw_threads",
        )),
        optional_tables: &[],
        query: "
            WITH sums AS (
                SELECT thread, sum(coalesce(dur_tick, $last_tick - ts_tick)) AS ticks
                FROM raw_thread_states
                WHERE state <> 'exited'
                GROUP BY thread),
            lives AS (
                SELECT thread, sum(coalesce(dur_tick, $last_tick - ts_tick)) AS life
                FROM raw_threads
                GROUP BY thread),
            judged AS (
                SELECT lives.thread, coalesce(ticks, 0) <> life AS is_broken
                FROM lives LEFT JOIN sums ON lives.thread = sums.thread)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE is_broken) AS broken,
                   min(thread) FILTER (WHERE is_broken) AS first
            FROM judged",
    },
    Invariant {
        name: "active-is-active",
        sentence: "The active intervals, the active states and the active time of a user thread have the same sum.",
        first_is: "thread",
        in_file_order: false,
        pass: Some(Pass::SameSums(
            &[
                "SELECT thread, dur_tick FROM raw_active",
                "SELECT thread, coalesce(dur_tick, $last_tick - ts_tick) FROM raw_thread_states WHERE state = 'active'",
            ],
            "SELECT thread, active_tick FROM raw_threads",
        )),
        optional_tables: &[],
        query: "
            WITH intervals AS (
                SELECT thread, sum(dur_tick) AS ticks FROM raw_active GROUP BY thread),
            states AS (
                SELECT thread, sum(coalesce(dur_tick, $last_tick - ts_tick)) AS ticks
                FROM raw_thread_states
                WHERE state = 'active'
                GROUP BY thread),
            times AS (
                SELECT thread, sum(active_tick) AS ticks FROM raw_threads GROUP BY thread),
            judged AS (
                SELECT times.thread,
                       coalesce(intervals.ticks, 0) <> times.ticks
                           OR coalesce(states.ticks, 0) <> times.ticks AS is_broken
                FROM times
                    LEFT JOIN intervals ON times.thread = intervals.thread
                    LEFT JOIN states ON times.thread = states.thread)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE is_broken) AS broken,
                   min(thread) FILTER (WHERE is_broken) AS first
            FROM judged",
    },
    Invariant {
        name: "lwp-time-is-spent",
        sentence: "The on-CPU time of an LWP is the sum of its times with and without a mounted user thread.",
        first_is: "LWP",
        in_file_order: false,
        pass: None,
        optional_tables: &[],
        query: "
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE on_cpu_tick <> active_tick + unmounted_tick) AS broken,
                   CAST(min(lwp) FILTER (WHERE on_cpu_tick <> active_tick + unmounted_tick) AS BIGINT) AS first
            FROM raw_lwps
            WHERE carries_threads",
    },
    Invariant {
        name: "lwp-time-is-running",
        sentence: "The on-CPU time of an LWP is the sum of its running states.",
        first_is: "LWP",
        in_file_order: false,
        pass: None,
        optional_tables: &[],
        query: "
            WITH running AS (
                SELECT lwp, sum(coalesce(dur_tick, $last_tick - ts_tick)) AS ticks
                FROM raw_lwp_states
                WHERE state = 'running' AND lwp <> 0
                GROUP BY lwp),
            times AS (
                SELECT lwp, sum(on_cpu_tick) AS on_cpu_tick FROM raw_lwps WHERE lwp <> 0 GROUP BY lwp),
            judged AS (
                SELECT times.lwp, coalesce(ticks, 0) <> on_cpu_tick AS is_broken
                FROM times LEFT JOIN running ON times.lwp = running.lwp)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE is_broken) AS broken,
                   CAST(min(lwp) FILTER (WHERE is_broken) AS BIGINT) AS first
            FROM judged",
    },
];
