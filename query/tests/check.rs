//! Each promise of a super-trace, kept and broken.
//!
//! ```text
//! CPU 0      |==10==|  idle  |==10==|        LWP 10 carries thread 1; thread 1 lives 100 to 200,
//! thread 1   | A    | in-k.  | A  |r|        active 100-120 and 150-190
//! ```

#[path = "../../sql/tests/support/mod.rs"]
mod support;

use serde_json::{Value, json};
use sigmund_query::{Report, Verdict, check};
use sigmund_sql::SuperTrace;
use support::Little;

fn sound() -> Little {
    let mut little = Little::new();
    little.info("first_tick", 100).info("last_tick", 200);
    little.info("witness_agree", 9999).info("witness_disagree", 1).info("witness_single", 5);
    for tick in [100, 100, 150, 200] {
        little.row("events", json!({"ts_tick": tick, "level": "USER", "name": "e"}));
    }
    let running = |ts: i64, dur: Value, lwp: i64| json!({"ts_tick": ts, "dur_tick": dur, "lwp": lwp, "state": "running", "cpu": 0});
    little.row("lwp_states", running(100, json!(20), 10));
    little.row("lwp_states", running(120, json!(30), 0));
    little.row("lwp_states", json!({"ts_tick": 120, "dur_tick": 30, "lwp": 10, "state": "sleeping"}));
    little.row("lwp_states", running(150, json!(null), 10));
    little.row("lwps", json!({"lwp": 10, "carries_threads": true, "on_cpu_tick": 70, "active_tick": 60, "unmounted_tick": 10}));
    little.row("threads", json!({"thread": 1, "ts_tick": 100, "dur_tick": null, "active_tick": 60}));
    for (ts, dur, state) in [
        (100, json!(20), "active"),
        (120, json!(30), "in-kernel"),
        (150, json!(40), "active"),
        (190, json!(null), "ready"),
    ] {
        little.row("thread_states", json!({"ts_tick": ts, "dur_tick": dur, "thread": 1, "state": state}));
    }
    little.row("active", json!({"ts_tick": 100, "dur_tick": 20, "thread": 1, "lwp": 10, "cpu": 0}));
    little.row("active", json!({"ts_tick": 150, "dur_tick": 40, "thread": 1, "lwp": 10, "cpu": 0}));
    little
}

async fn report(little: &Little) -> Report {
    let trace = SuperTrace::open(little.write()).await.unwrap();
    check(&trace).await.unwrap()
}

fn broken(report: &Report) -> Vec<&str> {
    report.items.iter().filter(|i| i.verdict == Verdict::Broken).map(|i| i.name).collect()
}

#[tokio::test]
async fn a_sound_trace_keeps_every_promise() {
    let report = report(&sound()).await;
    let judged: Vec<_> = report.items.iter().map(|i| (i.name, i.verdict)).collect();
    let ok = [
        "two-witnesses",
        "events-in-order",
        "one-lwp-per-cpu",
        "one-cpu-per-lwp",
        "one-place-per-thread",
        "states-without-holes",
        "states-sum-to-life",
        "active-is-active",
        "lwp-time-is-spent",
        "lwp-time-is-running",
        "losses",
    ];
    assert_eq!(judged, ok.map(|name| (name, Verdict::Ok)));
    assert!(!report.is_broken());
    assert_eq!(report.item("events-in-order").unwrap().figures[0].value, 4.0);
}

#[tokio::test]
async fn an_empty_trace_breaks_nothing() {
    let report = report(&Little::new()).await;
    assert_eq!(broken(&report), [""; 0]);
    assert_eq!(report.item("events-in-order").unwrap().verdict, Verdict::NotApplicable);
}

#[tokio::test]
async fn each_broken_promise_is_told_with_its_first_place() {
    let first = |report: &Report, name: &str| report.item(name).unwrap().detail.clone();

    let mut little = sound();
    little.clear("info");
    little.info("schema_version", 1).info("last_tick", 200);
    little.info("witness_agree", 998).info("witness_disagree", 2);
    let r = report(&little).await;
    assert_eq!(broken(&r), ["two-witnesses"]);
    assert_eq!(first(&r, "two-witnesses"), "99.8000 % agree, expected at least 99.9 %");

    let mut little = sound();
    little.row("events", json!({"ts_tick": 199, "level": "USER", "name": "e"}));
    little.next_part("events");
    little.row("events", json!({"ts_tick": 50, "level": "USER", "name": "e"}));
    let r = report(&little).await;
    assert_eq!(broken(&r), ["events-in-order"]);
    assert_eq!(first(&r, "events-in-order"), "first: at tick 50");
    assert_eq!(r.item("events-in-order").unwrap().figures[1].value, 2.0);

    let mut little = sound();
    little.row("lwp_states", json!({"ts_tick": 119, "dur_tick": 1, "lwp": 0, "state": "running", "cpu": 0}));
    assert_eq!(broken(&report(&little).await), ["one-lwp-per-cpu"]);

    let mut little = sound();
    little.row("lwp_states", json!({"ts_tick": 110, "dur_tick": 5, "lwp": 10, "state": "running", "cpu": 1}));
    assert_eq!(broken(&report(&little).await), ["one-cpu-per-lwp", "lwp-time-is-running"]);

    let mut little = sound();
    little.row("active", json!({"ts_tick": 110, "dur_tick": 5, "thread": 1, "lwp": 11, "cpu": 1}));
    assert_eq!(broken(&report(&little).await), ["one-place-per-thread", "active-is-active"]);

    let mut little = sound();
    little.row("threads", json!({"thread": 2, "ts_tick": 100, "dur_tick": 30}));
    for (ts, dur) in [(100, 10), (115, 15)] {
        little.row("thread_states", json!({"ts_tick": ts, "dur_tick": dur, "thread": 2, "state": "ready"}));
    }
    let r = report(&little).await;
    assert_eq!(broken(&r), ["states-without-holes", "states-sum-to-life"]);
    assert_eq!(first(&r, "states-without-holes"), "first: at tick 115");
    assert_eq!(first(&r, "states-sum-to-life"), "first: thread 2");

    let mut little = sound();
    little.row("lwps", json!({"lwp": 11, "carries_threads": true, "on_cpu_tick": 3, "active_tick": 1}));
    let r = report(&little).await;
    assert_eq!(broken(&r), ["lwp-time-is-spent", "lwp-time-is-running"]);
    assert_eq!(first(&r, "lwp-time-is-spent"), "first: LWP 11");
}

#[tokio::test]
async fn losses_are_counted_and_a_serious_one_breaks_the_trace() {
    let mut little = sound();
    little.row("losses", json!({"kind": "dropped", "level": "USER", "severity": "gap", "count": 7, "detail": "lwp 10: a packet"}));
    little.row("losses", json!({"kind": "dropped", "level": "USER", "severity": "gap", "count": 3, "detail": "lwp 11: a packet"}));
    let r = report(&little).await;
    let losses = r.item("losses").unwrap();
    assert_eq!(losses.verdict, Verdict::Ok);
    let figures: Vec<_> = losses.figures.iter().map(|f| (f.name.as_str(), f.value)).collect();
    assert_eq!(figures, [("gap dropped", 2.0), ("gap dropped events", 10.0)]);
    assert_eq!(losses.detail, "gap dropped: lwp 10: a packet");
    little
        .row("losses", json!({"kind": "damaged", "level": "KERN", "severity": "serious", "detail": "cpu 2"}));
    assert_eq!(broken(&report(&little).await), ["losses"]);
}
