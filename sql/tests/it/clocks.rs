//! Several super-traces in one session: each has its own clock, and rows of one never meet those of another by accident.

use std::path::Path;

use crate::{
    asked::{answer, error},
    support::Little,
};
use serde_json::json;
use sigmund_sql::{Fleet, SuperTrace};

// LWP 70   |==syscall==|          the same ticks on both hosts
// process 70, thread 5
/// The clock of a host: its rate, and the second of 2023-11-14T22:13 at which it was 1000.
fn host(tick_hz: f64, second: i64) -> Little {
    let mut little = Little::new();
    little.info("tick_hz", tick_hz).info("first_tick", 1000).info("last_tick", 1000 + (tick_hz / 1e7) as i64);
    let nanos = 1_700_000_000_000_000_000_i64 + second * 1_000_000_000;
    little.row(
        "clocks",
        json!({"domain": "realtime", "ns": nanos, "before_tick": 1000, "after_tick": 1000, "used": true}),
    );
    little.row("events", json!({"ts_tick": 1000, "level": "KERN", "name": "tick", "lwp": 70}));
    little.row("lwps", json!({"lwp": 70, "pid": 70, "name": "main", "ts_tick": 1000}));
    little.row("processes", json!({"pid": 70, "name": "server", "ts_tick": 1000}));
    little.row("syscalls", json!({"ts_tick": 1010, "dur_tick": 10, "lwp": 70, "name": "read"}));
    little
        .row("lwp_states", json!({"ts_tick": 1000, "dur_tick": 30, "lwp": 70, "state": "running", "cpu": 0}));
    little.row("lwp_states", json!({"ts_tick": 1030, "lwp": 70, "state": "exited"}));
    little
}

async fn fleet() -> (Vec<Little>, SuperTrace) {
    let hosts = vec![host(1e9, 0), host(5e8, 7)];
    let mut traces = Vec::new();
    for (name, little) in ["h1", "h2"].into_iter().zip(&hosts) {
        traces.push((name.to_string(), SuperTrace::open(little.write()).await.unwrap()));
    }
    let fleet = Fleet::of(Path::new("fleet"), traces).unwrap();
    (hosts, fleet.trace)
}

async fn attached() -> (Vec<Little>, SuperTrace) {
    let hosts = vec![host(1e9, 0), host(5e8, 7)];
    let mut trace = SuperTrace::open(hosts[0].write()).await.unwrap();
    trace.name("a").unwrap();
    trace.attach("b", SuperTrace::open(hosts[1].write()).await.unwrap()).unwrap();
    (hosts, trace)
}

#[tokio::test]
async fn an_instant_of_a_host_is_converted_by_its_clock() {
    let (_hosts, trace) = fleet().await;
    let by_host = "SELECT host, wall_time(host, min(ts_tick)) FROM events GROUP BY host ORDER BY host";
    assert_eq!(answer(&trace, by_host).await, ["h1 2023-11-14T22:13:20Z", "h2 2023-11-14T22:13:27Z"]);
    let lengths = "SELECT host, to_ns(host, sum(dur_tick)), sum(dur_ns), to_ticks(host, 100) FROM syscalls GROUP BY host ORDER BY host";
    assert_eq!(answer(&trace, lengths).await, ["h1 10 10 100", "h2 20 20 50"]);
    // The tables of one host are by its clock alone.
    let of_one = "SELECT wall_time(ts_tick), to_ns(10) FROM \"h2\".events";
    assert!(
        answer(&trace, "SELECT wall_time(ts_tick) FROM \"h2\".events").await[0]
            .starts_with("2023-11-14T22:13:27")
    );
    assert!(error(&trace, of_one).await.contains("to_ns: expected a host"));
    for query in [
        "SELECT host, wall_time(min(ts_tick)) FROM events GROUP BY host",
        "SELECT to_ns(dur_tick) FROM syscalls",
        "SELECT to_ticks(5)",
        "SELECT wall_time((SELECT min(ts_tick) FROM events))",
        "SELECT * FROM merged((SELECT host, to_ns(ts_tick) AS ts FROM events))",
    ] {
        let message = error(&trace, query).await;
        assert!(message.contains("expected a host") && message.contains("h1, h2"), "{query}: {message}");
    }
    let unknown = error(&trace, "SELECT wall_time('h3', ts_tick) FROM events").await;
    assert!(unknown.contains("found `h3`; nearest: h1, h2"), "{unknown}");
    assert_eq!(answer(&trace, "SELECT to_ns(NULL, 5), to_ns('h2', NULL)").await, [" "]);
}

#[tokio::test]
async fn hosts_whose_clocks_agree_need_not_be_named() {
    let hosts = [host(1e9, 0), host(1e9, 7)];
    let mut traces = Vec::new();
    for (name, little) in ["h1", "h2"].into_iter().zip(&hosts) {
        traces.push((name.to_string(), SuperTrace::open(little.write()).await.unwrap()));
    }
    let trace = Fleet::of(Path::new("fleet"), traces).unwrap().trace;
    assert_eq!(answer(&trace, "SELECT to_ns(sum(dur_tick)), to_ticks(7) FROM syscalls").await, ["20 7"]);
    assert!(
        error(&trace, "SELECT wall_time(ts_tick) FROM events").await.contains("wall_time: expected a host")
    );
}

#[tokio::test]
async fn an_instant_of_an_attached_super_trace_is_converted_by_its_clock() {
    let (_traces, trace) = attached().await;
    let each = "SELECT wall_time(ts_tick) AS t FROM a.events UNION ALL SELECT wall_time(ts_tick) FROM b.events ORDER BY t";
    assert_eq!(answer(&trace, each).await, ["2023-11-14T22:13:20Z", "2023-11-14T22:13:27Z"]);
    assert_eq!(
        answer(&trace, "SELECT wall_time(ts_tick), to_ns(5) FROM events").await,
        ["2023-11-14T22:13:20Z 5"]
    );
    let deep = "WITH late AS (SELECT max(ts_tick) AS t FROM (SELECT * FROM b.events) AS e) SELECT wall_time(t), to_ns(t - t + 5) FROM late";
    assert_eq!(answer(&trace, deep).await, ["2023-11-14T22:13:27Z 10"]);
    let scalar = "SELECT wall_time((SELECT min(ts_tick) FROM b.events)) AS x, (SELECT wall_time(min(ts_tick)) FROM b.events) AS y";
    assert_eq!(answer(&trace, scalar).await, ["2023-11-14T22:13:27Z 2023-11-14T22:13:27Z"]);
    let both = "FROM a.events AS x JOIN b.events AS y ON x.lwp = y.lwp";
    let message = error(&trace, &format!("SELECT wall_time(y.ts_tick) {both}")).await;
    assert!(message.contains("expected a host or the name of a super-trace"), "{message}");
    let named = format!("SELECT wall_time('a', x.ts_tick), wall_time('b', y.ts_tick) {both}");
    assert_eq!(answer(&trace, &named).await, ["2023-11-14T22:13:20Z 2023-11-14T22:13:27Z"]);
}

#[tokio::test]
async fn intervals_of_different_hosts_do_not_meet() {
    let (_hosts, trace) = fleet().await;
    let query =
        "SELECT host, ts_tick, dur_tick, dur_ns FROM overlap(syscalls, lwp_states, lwp) ORDER BY host";
    assert_eq!(answer(&trace, query).await, ["h1 1010 10 10", "h2 1010 10 20"]);
    assert_eq!(answer(&trace, &query.replace("lwp)", "host, lwp)")).await, answer(&trace, query).await);
    let merged = "SELECT host, ts_ns, dur_ns, intervals FROM merged(syscalls) WHERE host = 'h2'";
    assert_eq!(answer(&trace, merged).await, ["h2 20 20 1"]);
    // Without a length: until the end of its own trace, 100 ticks after its begin at h1 and 50 at h2.
    let exited = "SELECT host, dur_tick FROM merged((SELECT * FROM lwp_states WHERE state = 'exited'), lwp) ORDER BY host";
    assert_eq!(answer(&trace, exited).await, ["h1 70", "h2 20"]);
    // A constant meets the rows of all.
    let window = "SELECT host, dur_tick, dur_ns FROM overlap(syscalls, (SELECT 1015 AS ts_tick, 100 AS dur_tick)) ORDER BY host";
    assert_eq!(answer(&trace, window).await, ["h1 5 5", "h2 5 10"]);
    for without in
        ["merged((SELECT ts_tick, dur_tick FROM syscalls))", "overlap(syscalls, \"h1\".lwp_states, lwp)"]
    {
        let message = error(&trace, &format!("SELECT * FROM {without}")).await;
        assert!(message.contains("expected a column host, found none"), "{without}: {message}");
    }
}

#[tokio::test]
async fn intervals_of_an_attached_super_trace_are_by_its_clock() {
    let (_traces, trace) = attached().await;
    let query = "SELECT ts_ns, dur_ns FROM overlap(b.syscalls, b.lwp_states, lwp)";
    assert_eq!(answer(&trace, query).await, ["20 20"]);
    let exited = "SELECT dur_tick FROM merged((SELECT * FROM b.lwp_states WHERE state = 'exited'))";
    assert_eq!(answer(&trace, exited).await, ["20"]);
    let message = error(&trace, "SELECT * FROM overlap(a.syscalls, b.lwp_states, lwp)").await;
    assert!(message.contains("expected tables of one super-trace, found those of a and b"), "{message}");
}

#[tokio::test]
async fn perfettos_queries_join_rows_of_the_same_host() {
    let (_hosts, trace) = fleet().await;
    let threads = "SELECT sched.host, thread.host, tid, process.name FROM sched JOIN thread USING (utid) LEFT JOIN process USING (upid) ORDER BY 1";
    assert_eq!(answer(&trace, threads).await, ["h1 h1 70 server", "h2 h2 70 server"]);
    let slices = "SELECT slice.host, thread_track.host, utid = thread.utid FROM slice JOIN thread_track ON slice.track_id = thread_track.id \
                  JOIN thread USING (utid) ORDER BY 1";
    assert_eq!(answer(&trace, slices).await, ["h1 h1 true", "h2 h2 true"]);
    assert_eq!(answer(&trace, "SELECT count(DISTINCT id), count(*) FROM slice").await, ["2 2"]);
    assert_eq!(answer(&trace, "SELECT count(*) FROM overlap(sched, thread_state, utid)").await, ["2"]);
}
