//! Table functions over intervals.

use crate::{
    asked::{answer, error},
    support::Little,
};
use serde_json::json;
use sigmund_sql::SuperTrace;

// thread 1   |--active--|--stalled--|--active--|
// spans         |-------request--------|  |last|
// thread 2            |--active--|
async fn drawn() -> (Little, SuperTrace) {
    let mut little = Little::new();
    little.info("tick_hz", 5e8).info("first_tick", 1000).info("last_tick", 1090);
    for (thread, from, length, state) in
        [(1, 1000, 20, "active"), (1, 1020, 20, "stalled"), (2, 1010, 30, "active"), (1, 1040, 30, "active")]
    {
        let row = json!({"ts_tick": from, "dur_tick": length, "thread": thread, "state": state, "lwp": 70 + thread});
        little.row("thread_states", row);
    }
    little.row("thread_states", json!({"ts_tick": 1070, "thread": 1, "state": "exited"}));
    for (name, from, length, lwp) in [("request", 1005, 45, 71), ("last", 1060, 10, 71)] {
        little.row(
            "spans",
            json!({"ts_tick": from, "dur_tick": length, "thread": 1, "lwp": lwp, "name": name, "kind": "span"}),
        );
    }
    for (tick, thread) in [(1020, 1), (1039, 2), (1040, 2)] {
        little.row("events", json!({"ts_tick": tick, "thread": thread, "name": "tick", "level": "USER"}));
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    (little, trace)
}

#[tokio::test]
async fn spans_are_cut_by_the_states_of_their_threads() {
    let (_little, trace) = drawn().await;
    let query = "SELECT ts_tick, ts_ns, dur_tick, dur_ns, thread, name, state FROM overlap(spans, thread_states, thread) ORDER BY ts_tick";
    let expected = [
        "1005 10 15 30 1 request active",
        "1020 40 20 40 1 request stalled",
        "1040 80 10 20 1 request active",
        "1060 120 10 20 1 last active",
    ];
    assert_eq!(answer(&trace, query).await, expected);
    // Those who wait for no key meet all.
    let query = "SELECT count(*) FROM overlap(spans, thread_states)";
    assert_eq!(answer(&trace, query).await, ["5"]);
    // Columns that both have are named after their tables; a filter of the key is asked of both.
    let query = "SELECT spans_ts_tick, thread_states_dur_tick, spans_lwp FROM overlap(spans, thread_states, thread) \
                 WHERE thread = 1 AND state = 'stalled'";
    assert_eq!(answer(&trace, query).await, ["1005 20 71"]);
    assert_eq!(answer(&trace, &query.replace("thread = 1", "thread = 2")).await, [""; 0]);
}

#[tokio::test]
async fn an_event_has_the_state_that_its_thread_was_in() {
    let (_little, trace) = drawn().await;
    let query = "SELECT events_ts_tick, dur_tick, thread, state FROM overlap(events, thread_states, thread) ORDER BY ts_tick";
    assert_eq!(answer(&trace, query).await, ["1020 0 1 stalled", "1039 0 2 active"]);
    let query =
        "SELECT ts_tick, thread, state FROM overlap_left(events, thread_states, thread) ORDER BY ts_tick";
    assert_eq!(answer(&trace, query).await, ["1020 1 stalled", "1039 2 active", "1040 2 "]);
}

#[tokio::test]
async fn a_query_is_a_table_and_a_row_without_a_length_lasts_until_the_end() {
    let (_little, trace) = drawn().await;
    let query = "SELECT ts_tick, dur_tick, thread, state \
                 FROM overlap((SELECT ts_tick, dur_tick, thread FROM spans WHERE name = 'last'), \
                              (SELECT ts_tick + 0 AS ts_tick, dur_tick, thread, state FROM thread_states), thread)";
    assert_eq!(answer(&trace, query).await, ["1060 10 1 active"]);
    let query = "SELECT ts_tick, dur_tick, \"left_name\", right_name FROM overlap(spans, spans, lwp) ORDER BY ts_tick";
    assert_eq!(answer(&trace, query).await, ["1005 45 request request", "1060 10 last last"]);
    let query = "SELECT ts_tick, dur_tick, intervals FROM merged(thread_states, thread) WHERE thread = 1";
    assert_eq!(answer(&trace, query).await, ["1000 90 4"]);
    let query = "SELECT ts_tick, dur_tick, intervals FROM merged((SELECT * FROM thread_states WHERE thread = 2), \"state\")";
    assert_eq!(answer(&trace, query).await, ["1010 30 1"]);
}

#[tokio::test]
async fn gaps_are_between_the_intervals_of_a_key() {
    let (_little, trace) = drawn().await;
    assert_eq!(
        answer(&trace, "SELECT ts_tick, dur_tick, thread FROM gaps(spans, thread)").await,
        ["1050 10 1"]
    );
    let query = "SELECT name, self_tick, self_ns FROM self_time(spans, thread) ORDER BY ts_tick";
    assert_eq!(answer(&trace, query).await, ["request 45 90", "last 10 20"]);
}

#[tokio::test]
async fn tables_with_the_names_of_perfetto_count_in_nanoseconds() {
    let (_little, trace) = drawn().await;
    let query = "SELECT ts, dur, name FROM overlap(slice, (SELECT 20 AS ts, 10 AS dur))";
    assert_eq!(answer(&trace, query).await, ["20 10 request"]);
}

#[tokio::test]
async fn a_wrong_call_says_what_it_expected() {
    let (_little, trace) = drawn().await;
    for (query, expected) in [
        ("overlap(spans)", "overlap: expected two tables, and the columns of the key, found 1 arguments"),
        (
            "overlap(spans, thread_states, threat)",
            "overlap: spans: expected a column threat of the key, found none; nearest: thread",
        ),
        (
            "overlap(spans, event_types)",
            "overlap: event_types: expected a column ts_tick, or ts, found neither",
        ),
        (
            "overlap(spans, (SELECT 20 AS ts))",
            "overlap: expected times in the same unit, found ts_tick and ts",
        ),
        (
            "overlap(spans, lwp_states, thread)",
            "overlap: lwp_states: expected a column thread of the key, found none",
        ),
        (
            "overlap(spans, cpus, 5)",
            "overlap: expected names of tables, or queries in parentheses, and then names of columns of the key, found 5",
        ),
        ("merged(spams)", "nearest: spans"),
    ] {
        let message = error(&trace, &format!("SELECT * FROM {query}")).await;
        assert!(message.contains(expected), "{query}: {message}");
    }
}

#[tokio::test]
async fn calls_nest_and_take_what_a_query_names() {
    let (_little, trace) = drawn().await;
    let gap = ["1050 10 1"];
    for query in [
        "SELECT ts_tick, dur_tick, thread FROM gaps((SELECT * FROM merged(spans, thread)), thread)",
        "SELECT ts_tick, dur_tick, thread FROM gaps(merged(spans, thread), thread)",
        "SELECT ts_tick, dur_tick, thread FROM gaps(merged('spans', 'thread'), 'thread')",
        "WITH s AS (SELECT * FROM spans) SELECT ts_tick, dur_tick, thread FROM gaps(s, thread)",
        "WITH s AS (SELECT * FROM spans), m AS (SELECT * FROM merged(s, thread)) SELECT ts_tick, dur_tick, thread FROM gaps(m, thread)",
    ] {
        assert_eq!(answer(&trace, query).await, gap, "{query}");
    }
    let query = "SELECT ts_tick, what FROM overlap((SELECT *, iif(name = 'last', 'l', 'r') AS what FROM spans), thread_states, thread) \
                 WHERE state = 'stalled'";
    assert_eq!(answer(&trace, query).await, ["1020 r"]);
    // A query may have a name, after which its columns are named.
    let query = "SELECT ts_tick, calls_lwp FROM overlap(calls => (SELECT * FROM spans), thread_states, thread) WHERE state = 'stalled'";
    assert_eq!(answer(&trace, query).await, ["1020 71"]);
    let query = "SELECT o.ts_tick, s.name FROM merged(spans, thread) AS o JOIN spans s ON o.ts_tick = s.ts_tick ORDER BY 1";
    assert_eq!(answer(&trace, query).await, ["1005 request", "1060 last"]);
}

#[tokio::test]
async fn a_key_that_is_null_is_equal_to_none_and_kept_where_all_rows_of_a_table_are() {
    // lwp 5, thread NULL  |--a--|  |--b--|
    // lwp 5, thread 1           |c|
    // thread NULL         |-----d-----|       of the second table
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 0).info("last_tick", 100);
    for (name, from, length, thread) in [("a", 10, 10, None), ("b", 30, 10, None), ("c", 20, 5, Some(1))] {
        let row = json!({"ts_tick": from, "dur_tick": length, "thread": thread, "lwp": 5, "name": name, "kind": "span"});
        little.row("spans", row);
        little.row(
            "syscalls",
            json!({"ts_tick": from, "dur_tick": length, "thread": thread, "lwp": 5, "name": name}),
        );
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let both = "SELECT ts_tick, spans_name FROM overlap(spans, syscalls, thread)";
    assert_eq!(answer(&trace, both).await, ["20 c"]);
    let left = "SELECT ts_tick, dur_tick, thread, spans_name, syscalls_name FROM overlap_left(spans, syscalls, thread) ORDER BY ts_tick";
    assert_eq!(answer(&trace, left).await, ["10 10  a ", "20 5 1 c c", "30 10  b "]);
    let merged = "SELECT ts_tick, dur_tick, thread FROM merged(spans, thread) ORDER BY ts_tick";
    assert_eq!(answer(&trace, merged).await, ["10 10 ", "20 5 1", "30 10 "]);
    let gaps = "SELECT ts_tick, dur_tick, thread FROM gaps(spans, thread)";
    assert_eq!(answer(&trace, gaps).await, ["20 10 "]);
    let own = "SELECT ts_tick, self_tick FROM self_time(spans, thread, lwp) ORDER BY ts_tick";
    assert_eq!(answer(&trace, own).await, ["10 10", "20 5", "30 10"]);
    let none = "SELECT count(*) FROM overlap_left(spans, syscalls, thread) WHERE thread IS NULL";
    assert_eq!(answer(&trace, none).await, ["2"]);
}

#[tokio::test]
async fn perfettos_times_of_a_result_are_its_own() {
    let mut little = Little::new();
    little.info("tick_hz", 5e8).info("first_tick", 1000).info("last_tick", 1100);
    little
        .row("lwp_states", json!({"ts_tick": 1010, "dur_tick": 30, "lwp": 7, "state": "running", "cpu": 1}));
    little.row("syscalls", json!({"ts_tick": 1020, "dur_tick": 5, "lwp": 7, "name": "read"}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let query = "SELECT ts, dur, ts_tick, dur_tick, ts_ns, dur_ns, sched_ts, sched_dur, sched_ts_end FROM overlap(sched, syscalls, lwp)";
    assert_eq!(answer(&trace, query).await, ["40 10 1020 5 40 10 20 60 80"]);
    let query = "SELECT ts, dur, state FROM overlap(sched, thread_state, utid)";
    assert_eq!(answer(&trace, query).await, ["20 60 Running"]);
    let query = "SELECT ts, dur FROM merged(sched, utid)";
    assert_eq!(answer(&trace, query).await, ["20 60"]);
    let query = "SELECT ts, dur, self_dur, ts_end FROM self_time(sched, utid)";
    assert_eq!(answer(&trace, query).await, ["20 60 60 80"]);
}

#[tokio::test]
async fn adjacent_intervals_meet_in_nanoseconds() {
    // 3 ticks are 10 ns.
    let mut little = Little::new();
    little.info("tick_hz", 3e8).info("first_tick", 1000).info("last_tick", 1200);
    let mut from = 1000;
    for length in [1, 2, 4, 5, 7, 8, 10, 11, 13, 1, 1, 1] {
        little.row("lwp_states", json!({"ts_tick": from, "dur_tick": length, "lwp": 7, "state": "running"}));
        little.row(
            "thread_states",
            json!({"ts_tick": from, "dur_tick": length, "thread": 1, "state": "active"}),
        );
        little.row("locks", json!({"ts_tick": from, "wait_tick": length, "hold_tick": 1, "thread": 1, "contended": true, "kind": "mutex"}));
        from += length;
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!(
        answer(&trace, "SELECT count(*) FROM gaps((SELECT ts, dur, utid FROM thread_state), utid)").await,
        ["0"]
    );
    for table in ["lwp_states", "thread_states"] {
        let gaps = format!(
            "SELECT count(*) FROM (SELECT ts_ns + dur_ns AS to_ns, lead(ts_ns) OVER (ORDER BY ts_ns) AS next FROM {table}) \
                            AS t WHERE to_ns <> next"
        );
        assert_eq!(answer(&trace, &gaps).await, ["0"], "{table}");
    }
    let sched = "SELECT sum(dur), max(ts_end), max(ts + dur) FROM sched";
    assert_eq!(answer(&trace, sched).await, ["213 213 213"]);
    // Parts of a row sum to it.
    let parts = "SELECT sum(dur_ns) FROM overlap(lwp_states, (SELECT * FROM thread_states))";
    assert_eq!(answer(&trace, parts).await, ["213"]);
    // A wait ends where the next state begins.
    let holds = "SELECT count(*), sum(h.ts_ns - s.ts_ns) FROM lock_hold h JOIN thread_states s ON h.ts_tick = s.ts_tick";
    assert_eq!(answer(&trace, holds).await, ["11 0"]);
}

// The same rows in many batches, on all CPUs, as in one query of joins.
#[tokio::test]
async fn many_rows_overlap_as_a_join_finds_them() {
    let mut little = Little::new();
    little.info("first_tick", 0).info("last_tick", 100_000);
    little.rows_per_group = 1000;
    let mut random = 7_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    for _ in 0..9000 {
        let (from, length, thread) = (below(100_000), below(60), below(13));
        little.row(
            "thread_states",
            json!({"ts_tick": from, "dur_tick": length, "thread": thread, "state": "active"}),
        );
        let (from, length, thread) = (below(100_000), below(3) * below(2000), below(13));
        little.row(
            "spans",
            json!({"ts_tick": from, "dur_tick": length, "thread": thread, "name": "s", "kind": "span"}),
        );
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let functions = "SELECT count(*), sum(dur_tick), sum(ts_tick % 1000), sum(thread) FROM overlap(spans, thread_states, thread)";
    let join = "SELECT count(*), sum(least(s.ts_tick + s.dur_tick, t.ts_tick + t.dur_tick) - greatest(s.ts_tick, t.ts_tick)), \
                       sum(greatest(s.ts_tick, t.ts_tick) % 1000), sum(s.thread) \
                FROM spans s JOIN thread_states t ON s.thread = t.thread \
                WHERE greatest(s.ts_tick, t.ts_tick) < least(s.ts_tick + s.dur_tick, t.ts_tick + t.dur_tick) \
                   OR (s.dur_tick = 0 AND t.ts_tick <= s.ts_tick AND s.ts_tick < t.ts_tick + t.dur_tick) \
                   OR (t.dur_tick = 0 AND s.ts_tick <= t.ts_tick AND t.ts_tick < s.ts_tick + s.dur_tick)";
    let found = answer(&trace, functions).await;
    assert_eq!(found, answer(&trace, join).await);
    let count: u64 = found[0].split(' ').next().unwrap().parse().unwrap();
    assert!(count > 10_000, "{count}");
    let plan = answer(&trace, &format!("EXPLAIN {functions}")).await.join("\n");
    assert!(plan.contains("IntervalExec: overlap") && plan.contains("RepartitionExec"), "{plan}");
}

#[tokio::test]
async fn times_are_converted_and_percentiles_are_exact() {
    let (mut little, _trace) = drawn().await;
    for (domain, ns, tick) in [("realtime", 1_700_000_000_000_000_000_i64, 1000), ("monotonic_raw", 5, 1000)]
    {
        little.row(
            "clocks",
            json!({"domain": domain, "ns": ns, "before_tick": tick - 1, "after_tick": tick + 1, "used": true}),
        );
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let query =
        "SELECT to_ns(500), to_ticks(to_ns(500)), duration(to_ns(500)), wall_time(1010), log2_bucket(1000)";
    assert_eq!(answer(&trace, query).await, ["1000 500 1.000 µs 2023-11-14T22:13:20.000000020Z 512"]);
    let query = "SELECT percentile(dur_tick, 50), percentile(dur_tick, 99.9), percentile(dur_tick, 0), percentile(NULL, 50) FROM thread_states";
    assert_eq!(answer(&trace, query).await, ["20 30 20 "]);
    let query = "SELECT thread, percentile(dur_tick, 100) AS longest FROM thread_states GROUP BY thread ORDER BY thread";
    assert_eq!(answer(&trace, query).await, ["1 30", "2 30"]);
    for percent in ["101", "NULL", "dur_tick"] {
        let message =
            error(&trace, &format!("SELECT percentile(dur_tick, {percent}) FROM thread_states")).await;
        assert!(message.contains("expected one number from 0 to 100"), "{message}");
    }
    // 20, 20, 30, 30, and the same once.
    let query = "SELECT percentile(dur_tick, 50), percentile(DISTINCT dur_tick, 51), percentile(dur_tick / 8.0, 50), percentile(ts_tick, 50) \
                 FROM thread_states WHERE dur_tick > 0";
    assert_eq!(answer(&trace, query).await, ["20 30 2.5 1010"]);
    let query = "SELECT percentile(dur_tick, NULL) FROM thread_states WHERE false";
    assert_eq!(answer(&trace, query).await, [""]);
    let query = "SELECT duration(avg(dur_ns)), log2_bucket(5.5), log2_bucket(0.5), to_ns(avg(dur_tick)), CAST(3000000000 AS INT) FROM thread_states";
    assert_eq!(answer(&trace, query).await, ["50 ns 4 0 50 3000000000"]);
    // An error of the kernel's own, an unnamed one, and what is no error.
    let query = "SELECT errno_name(-2), errno_name(-512), errno_name(-4000), errno_name(3), errno_name(-4096), errno_name(NULL)";
    assert_eq!(answer(&trace, query).await, ["ENOENT ERESTARTSYS 4000   "]);
    let message = error(&trace, "SELECT duration('long')").await;
    assert!(message.contains("duration: expected a number"), "{message}");
}

#[tokio::test]
async fn instants_have_a_bucket_of_time() {
    let (_little, trace) = drawn().await;
    let query = "SELECT time_bucket(40, ts_ns) AS from_ns, count(*) FROM thread_states GROUP BY 1 ORDER BY 1";
    assert_eq!(answer(&trace, query).await, ["0 2", "40 1", "80 1", "120 1"]);
    let message = error(&trace, "SELECT time_bucket(0, ts_ns) FROM thread_states").await;
    assert!(message.contains("time_bucket: expected a width of 1 or more, found 0"), "{message}");
}

/// All rows of a `UNION ALL` of branches that have a constant each, in order, are found from the first ones on.
#[tokio::test]
async fn the_first_rows_of_several_branches_are_those_of_all_rows() {
    let (_little, trace) = drawn().await;
    let branches = "SELECT 'begin' AS what, ts_tick AS at, thread FROM thread_states \
                    UNION ALL SELECT 'end', ts_tick + 1000, thread FROM thread_states";
    for query in [
        format!("SELECT what, at FROM ({branches}) ORDER BY what DESC, at"),
        format!("SELECT what, at FROM ({branches}) ORDER BY what, at DESC"),
        format!("SELECT at, what FROM ({branches}) WHERE thread = 1 ORDER BY what DESC, thread, at"),
        format!("SELECT at % 7 AS rest, what FROM ({branches}) ORDER BY what DESC, rest, at"),
    ] {
        let all = answer(&trace, &query).await;
        for most in 1..=all.len() {
            let first = answer(&trace, &format!("{query} LIMIT {most}")).await;
            assert_eq!(first, all[..most], "{query} LIMIT {most}");
        }
    }
}
