//! The invariants of the intervals that the merge paired from events, and of processes: a sentence and a query each.
//!
//! A query tests whether intervals lie within others without comparing pairs of rows. Of the outer intervals that begin
//! no later than the inner one, it takes the latest end: this must be no earlier than the end of the inner interval. So
//! each query is linear in its rows, except for sorting.

use super::{invariants::Invariant, pass::Pass};

/// Rows of `$table` with the same `$key` and depth do not overlap. Each lies within a row whose depth is smaller by
/// one, and gives where that row begins. (An empty row may touch two outer rows at its instant: the end of one and the
/// beginning of the next.)
macro_rules! nesting {
    ($table:literal, $key:literal) => {
        concat!(
            "WITH intervals AS (
                SELECT ",
            $key,
            " AS key, depth, ts_tick, ts_tick + dur_tick AS end_tick, parent_tick FROM ",
            $table,
            "),
            of_depth AS (
                SELECT *, max(end_tick) OVER (PARTITION BY key, depth ORDER BY ts_tick, end_tick
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_end
                FROM intervals),
            line AS (
                SELECT key, depth, 0 AS is_inner, ts_tick, end_tick, previous_end, parent_tick,
                       depth = 0 AND parent_tick IS NOT NULL AS is_alone
                FROM of_depth
                UNION ALL
                SELECT key, depth - 1, 1, ts_tick, end_tick, CAST(NULL AS BIGINT), parent_tick, false
                FROM of_depth WHERE depth <> 0),
            with_outer AS (
                SELECT *, max(CASE WHEN is_inner = 0 THEN end_tick END) OVER around AS outer_end,
                       max(CASE WHEN is_inner = 0 THEN ts_tick END) OVER around AS outer_begin
                FROM line
                WINDOW around AS (PARTITION BY key, depth ORDER BY ts_tick, is_inner
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
            judged AS (
                SELECT ts_tick, is_inner,
                       CASE WHEN is_inner = 0 THEN coalesce(ts_tick < previous_end, false) OR is_alone
                            ELSE coalesce(outer_end < end_tick, true)
                                 OR (coalesce(outer_begin <> parent_tick, true)
                                     AND NOT coalesce(outer_begin = end_tick AND parent_tick < end_tick, false))
                       END AS is_broken
                FROM with_outer)
            SELECT count(*) FILTER (WHERE is_inner = 0) AS checked,
                   count(*) FILTER (WHERE is_broken) AS broken,
                   min(ts_tick) FILTER (WHERE is_broken) AS first
            FROM judged"
        )
    };
}

/// Each row of `$inner (key, ts_tick, end_tick, first)` lies within a row of `$outer (key, ts_tick, end_tick)` with the
/// same key.
macro_rules! within {
    ($inner:literal, $outer:literal) => {
        concat!(
            "WITH line AS (
                SELECT key, 0 AS is_inner, ts_tick, end_tick, CAST(NULL AS BIGINT) AS first FROM (",
            $outer,
            ")
                UNION ALL
                SELECT key, 1, ts_tick, end_tick, first FROM (",
            $inner,
            ")),
            with_outer AS (
                SELECT *, max(CASE WHEN is_inner = 0 THEN end_tick END) OVER (
                           PARTITION BY key ORDER BY ts_tick, is_inner
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS outer_end
                FROM line),
            judged AS (
                SELECT first, coalesce(outer_end < end_tick, true) AS is_broken FROM with_outer WHERE is_inner = 1)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE is_broken) AS broken,
                   min(first) FILTER (WHERE is_broken) AS first
            FROM judged"
        )
    };
}

/// `$broken` holds for no row of `$table`. `$checked` selects the rows that are counted as checked.
macro_rules! rows {
    ($table:literal, checked: $checked:literal, broken: $broken:literal) => {
        concat!(
            "SELECT count(*) AS checked,
                    count(*) FILTER (WHERE ",
            $broken,
            ") AS broken,
                    min(ts_tick) FILTER (WHERE ",
            $broken,
            ") AS first
             FROM ",
            $table,
            " WHERE ",
            $checked
        )
    };
}

const fn at_tick(
    name: &'static str,
    sentence: &'static str,
    optional_tables: &'static [&'static str],
    query: &'static str,
) -> Invariant {
    Invariant {
        name,
        sentence,
        first_is: "at tick",
        in_file_order: false,
        pass: None,
        optional_tables,
        query,
    }
}

/// The invariants of interrupts, system calls, spans, locks, wakeups, counters and processes.
pub(crate) const PAIRING_INVARIANTS: &[Invariant] = &[
    Invariant {
        pass: Some(Pass::Nested(
            "SELECT CAST(cpu AS BIGINT), CAST(depth AS BIGINT), ts_tick, ts_tick + dur_tick,
                    coalesce(parent_tick, -1) FROM raw_interrupts",
        )),
        ..at_tick(
            "interrupts-nest",
            "Interrupts of a CPU nest: each lies within the one that it interrupted, whose start it names, and \
             those of equal depth do not overlap.",
            &["interrupts"],
            nesting!("raw_interrupts", "cpu"),
        )
    },
    // An execve by an LWP that does not lead its process gets the number of the leader, and begins before the leader's
    // last call has ended.
    Invariant {
        pass: Some(Pass::Disjoint(
            "SELECT CAST(lwp AS BIGINT), ts_tick, ts_tick + dur_tick FROM raw_syscalls
             WHERE name IS NULL OR name NOT IN ('execve', 'execveat')",
        )),
        ..at_tick(
            "one-syscall-per-lwp",
            "System calls of an LWP do not overlap, except execve.",
            &["syscalls"],
            "WITH with_previous AS (
                SELECT ts_tick,
                       max(ts_tick + dur_tick) OVER (PARTITION BY lwp ORDER BY ts_tick, dur_tick
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_end
                FROM raw_syscalls
                WHERE name IS NULL OR name NOT IN ('execve', 'execveat'))
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE ts_tick < previous_end) AS broken,
                   min(ts_tick) FILTER (WHERE ts_tick < previous_end) AS first
            FROM with_previous",
        )
    },
    at_tick(
        "syscall-off-cpu-time",
        "The off-CPU time of a system call is not negative and not longer than the call.",
        &["syscalls"],
        rows!("raw_syscalls", checked: "off_cpu_tick IS NOT NULL", broken: "off_cpu_tick < 0 OR off_cpu_tick > dur_tick"),
    ),
    Invariant {
        pass: Some(Pass::Nested(
            "SELECT coalesce(thread, -1 - CAST(lwp AS BIGINT)), CAST(depth AS BIGINT), ts_tick, ts_tick + dur_tick,
                    coalesce(parent_tick, -1)
             FROM raw_spans",
        )),
        ..at_tick(
            "spans-nest",
            "Spans of a user thread, or of an LWP without one, nest: each lies within the one around it, whose start it \
             names, and those of equal depth do not overlap.",
            &["spans"],
            nesting!("raw_spans", "struct(thread, CASE WHEN thread IS NULL THEN lwp END)"),
        )
    },
    at_tick(
        "span-active-time",
        "The active time of a span is not negative and not longer than the span.",
        &["spans"],
        rows!("raw_spans", checked: "active_tick IS NOT NULL", broken: "active_tick < 0 OR active_tick > dur_tick"),
    ),
    Invariant {
        pass: Some(Pass::Within(
            "SELECT thread, ts_tick, ts_tick + dur_tick FROM raw_spans WHERE thread IS NOT NULL",
            "SELECT thread, ts_tick, coalesce(ts_tick + dur_tick, 9223372036854775807) FROM raw_threads",
        )),
        ..at_tick(
            "spans-within-life",
            "Each span lies within the lifetime of its user thread.",
            &["spans"],
            within!(
                "SELECT thread AS key, ts_tick, ts_tick + dur_tick AS end_tick, ts_tick AS first
                 FROM raw_spans WHERE thread IS NOT NULL",
                "SELECT thread AS key, ts_tick, coalesce(ts_tick + dur_tick, 9223372036854775807) AS end_tick
                 FROM raw_threads"
            ),
        )
    },
    // An address of a lock is valid in one process. If a number was used again, its owners count as one.
    Invariant {
        // Two processes may have locks at the same address. The query then distinguishes them.
        pass: Some(Pass::Disjoint(
            "SELECT object, ts_tick + coalesce(wait_tick, 0), ts_tick + coalesce(wait_tick, 0) + hold_tick FROM raw_locks
             WHERE hold_tick IS NOT NULL AND kind IN ('mutex', 'rwlock-write')",
        )),
        ..at_tick(
            "one-holder-per-lock",
            "Exclusive holds of a lock do not overlap.",
            &["locks"],
            "WITH of_threads AS (SELECT thread, max(pid) AS pid FROM raw_threads GROUP BY thread),
            of_lwps AS (SELECT lwp, max(pid) AS pid FROM raw_lwps GROUP BY lwp),
            holds AS (
                SELECT CASE WHEN l.thread IS NULL THEN of_lwps.pid ELSE of_threads.pid END AS pid, object,
                       l.ts_tick + coalesce(wait_tick, 0) AS taken_tick,
                       l.ts_tick + coalesce(wait_tick, 0) + hold_tick AS end_tick
                FROM raw_locks l
                    LEFT JOIN of_threads ON of_threads.thread = l.thread
                    LEFT JOIN of_lwps ON of_lwps.lwp = l.lwp
                WHERE hold_tick IS NOT NULL AND kind IN ('mutex', 'rwlock-write')),
            with_previous AS (
                SELECT taken_tick,
                       max(end_tick) OVER (PARTITION BY pid, object ORDER BY taken_tick, end_tick
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS held_until
                FROM holds)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE taken_tick < held_until) AS broken,
                   min(taken_tick) FILTER (WHERE taken_tick < held_until) AS first
            FROM with_previous",
        )
    },
    at_tick(
        "lock-times",
        "Waits and holds of locks are not negative.",
        &["locks"],
        rows!("raw_locks", checked: "true", broken: "wait_tick < 0 OR hold_tick < 0"),
    ),
    Invariant {
        pass: Some(Pass::Begun(&[
            [
                "SELECT CAST(lwp AS BIGINT), ts_tick, ts_tick + latency_tick FROM raw_wakeups
                 WHERE level = 'KERN' AND latency_tick IS NOT NULL",
                "SELECT CAST(lwp AS BIGINT), ts_tick, coalesce(ts_tick + dur_tick, $last_tick) FROM raw_lwp_states
                 WHERE state = 'running'",
            ],
            [
                "SELECT thread, ts_tick, ts_tick + latency_tick FROM raw_wakeups
                 WHERE level = 'USER' AND latency_tick IS NOT NULL",
                "SELECT thread, ts_tick, coalesce(ts_tick + dur_tick, $last_tick) FROM raw_thread_states
                 WHERE lwp IS NOT NULL",
            ],
        ])),
        ..at_tick(
            "wakeups-end-in-dispatches",
            "The latency of a wakeup ends when its LWP starts to run, or its user thread is mounted.",
            &["wakeups"],
            "WITH kern AS (
                SELECT w.ts_tick, w.latency_tick < 0 OR s.lwp IS NULL AS is_broken
                FROM raw_wakeups w
                    LEFT JOIN (SELECT DISTINCT lwp, ts_tick FROM raw_lwp_states WHERE state = 'running') s
                        ON s.lwp = w.lwp AND s.ts_tick = w.ts_tick + w.latency_tick
                WHERE w.level = 'KERN' AND w.latency_tick IS NOT NULL),
            by_runtime AS (
                SELECT w.ts_tick, w.latency_tick < 0 OR s.thread IS NULL AS is_broken
                FROM raw_wakeups w
                    LEFT JOIN (SELECT DISTINCT thread, ts_tick FROM raw_thread_states WHERE lwp IS NOT NULL) s
                        ON s.thread = w.thread AND s.ts_tick = w.ts_tick + w.latency_tick
                WHERE w.level = 'USER' AND w.latency_tick IS NOT NULL),
            judged AS (SELECT * FROM kern UNION ALL SELECT * FROM by_runtime)
            SELECT count(*) AS checked,
                   count(*) FILTER (WHERE is_broken) AS broken,
                   min(ts_tick) FILTER (WHERE is_broken) AS first
            FROM judged",
        )
    },
    at_tick(
        "counters-not-negative",
        "Counters are not negative.",
        &["counters"],
        rows!("raw_counters", checked: "true", broken: "value < 0"),
    ),
    Invariant {
        name: "lwps-within-processes",
        sentence: "Each LWP lies within the lifetime of its process.",
        first_is: "LWP",
        in_file_order: false,
        pass: Some(Pass::Within(
            "SELECT CAST(pid AS BIGINT), ts_tick, coalesce(ts_tick + dur_tick, 9223372036854775807) FROM raw_lwps
             WHERE pid IS NOT NULL",
            "SELECT CAST(pid AS BIGINT), ts_tick, coalesce(ts_tick + dur_tick, 9223372036854775807) FROM raw_processes",
        )),
        optional_tables: &["processes"],
        query: within!(
            "SELECT pid AS key, ts_tick, coalesce(ts_tick + dur_tick, 9223372036854775807) AS end_tick,
                    CAST(lwp AS BIGINT) AS first
             FROM raw_lwps WHERE pid IS NOT NULL",
            "SELECT pid AS key, ts_tick, coalesce(ts_tick + dur_tick, 9223372036854775807) AS end_tick
             FROM raw_processes"
        ),
    },
];
