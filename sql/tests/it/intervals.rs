//! Table functions over intervals.

use crate::support::Little;
use serde_json::json;
use sigmund_sql::{ErrorKind, SuperTrace};

async fn answer(trace: &SuperTrace, query: &str) -> Vec<String> {
    let text = trace.sql(query).await.unwrap().to_text().await.unwrap();
    let cells = |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(" ");
    text.lines().filter(|l| l.starts_with('|')).skip(1).map(cells).collect()
}

async fn error(trace: &SuperTrace, query: &str) -> String {
    let result = match trace.sql(query).await {
        Ok(result) => result.to_text().await,
        Err(error) => Err(error),
    };
    let error = result.expect_err("a wrong call is refused");
    assert_ne!(error.kind(), ErrorKind::Unreadable, "{error}");
    error.to_string()
}

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
            "overlap: spans: expected a column threat of the key, found none",
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
            "overlap: expected names of tables and columns, or queries in parentheses, found Int64(5)",
        ),
        ("merged(spams)", "nearest: spans"),
    ] {
        let message = error(&trace, &format!("SELECT * FROM {query}")).await;
        assert!(message.contains(expected), "{query}: {message}");
    }
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
    let message = error(&trace, "SELECT percentile(dur_tick, 101) FROM thread_states").await;
    assert!(message.contains("expected one number from 0 to 100"), "{message}");
}
