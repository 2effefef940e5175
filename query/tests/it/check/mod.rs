//! Each invariant of a super-trace, holding and broken.
//!
//! ```text
//! CPU 0      |==10==|  idle  |==10==|        LWP 10 carries thread 1; thread 1 lives 100 to 200,
//! thread 1   | A    | in-k.  | A  |r|        active 100-120 and 150-190
//! ```

mod pairing;

use crate::support::Little;
use serde_json::{Value, json};
use sigmund_model::{Cpu, Lwp, Thread, Ticks, tables::SCHEMA_VERSION};
use sigmund_query::{Cause, Listed, Report, Trust, Verdict, check};
use sigmund_sql::SuperTrace;

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
        little.row("thread_states", json!({"ts_tick": ts, "dur_tick": dur, "thread": 1, "state": state, "lwp": (state != "ready").then_some(10)}));
    }
    little.row("active", json!({"ts_tick": 100, "dur_tick": 20, "thread": 1, "lwp": 10, "cpu": 0}));
    little.row("active", json!({"ts_tick": 150, "dur_tick": 40, "thread": 1, "lwp": 10, "cpu": 0}));
    little.row("clocks", snapshot("monotonic", 101, 0.5));
    little.row("clocks", snapshot("monotonic", 190, 0.0));
    little
}

fn snapshot(clock: &str, tick: i64, residual: f64) -> Value {
    json!({"domain": clock, "before_tick": tick, "after_tick": tick + 4, "ns": tick, "residual_ns": residual})
}

async fn report(little: &Little) -> Report {
    let trace = SuperTrace::open(little.write()).await.unwrap();
    check(&trace, Listed::first(10)).await.unwrap()
}

fn broken(report: &Report) -> Vec<&str> {
    report.items.iter().filter(|i| i.verdict == Verdict::Broken).map(|i| i.name).collect()
}

#[tokio::test]
async fn every_invariant_of_a_sound_trace_holds() {
    let report = report(&sound()).await;
    let (none, judged): (Vec<_>, Vec<_>) =
        report.items.iter().map(|i| (i.name, i.verdict)).partition(|i| i.1 == Verdict::NotApplicable);
    assert_eq!(none.len(), 11, "the tables of pairs are empty");
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
        "clocks-fit",
        "losses",
    ];
    assert_eq!(judged, ok.map(|name| (name, Verdict::Ok)));
    assert_eq!((report.trust(), report.is_broken()), (Trust::Sound, false));
    assert_eq!(report.item("events-in-order").unwrap().figures[0].value, 4.0);
}

// Two sides of different times, of another boot, or with a wrong clock: no user event has a second witness.
#[tokio::test]
async fn two_sides_that_never_meet_are_not_sound() {
    let with_kernel = |events: u64| {
        let mut little = sound();
        little.clear("info");
        little.info("schema_version", SCHEMA_VERSION).info("first_tick", 100).info("last_tick", 200);
        little.info("witness_agree", 0).info("witness_disagree", 0).info("witness_single", 4);
        little.info("kernel_events", events).info("user_events", 4);
        little
    };
    let apart = report(&with_kernel(7)).await;
    assert_eq!(apart.item("two-witnesses").unwrap().verdict, Verdict::Gaps);
    assert_eq!(apart.trust(), Trust::SoundWithGaps);
    // Without a kernel side there is nobody to meet; that it is missing is a loss.
    let alone = report(&with_kernel(0)).await;
    assert_eq!(alone.item("two-witnesses").unwrap().verdict, Verdict::NotApplicable);
}

// Two sides that share a small part of their time agree there, and say nothing about the rest.
#[tokio::test]
async fn where_most_user_events_have_one_witness_the_trace_has_gaps() {
    let verdict = async |single: u64| {
        let mut little = sound();
        little.clear("info");
        little.info("schema_version", SCHEMA_VERSION).info("first_tick", 100).info("last_tick", 200);
        little.info("witness_agree", 1000).info("witness_disagree", 0).info("witness_single", single);
        little.info("kernel_events", 7).info("user_events", 1000 + single);
        let report = report(&little).await;
        (report.item("two-witnesses").unwrap().verdict, report.trust())
    };
    assert_eq!(verdict(1000).await, (Verdict::Ok, Trust::Sound));
    assert_eq!(verdict(1001).await, (Verdict::Gaps, Trust::SoundWithGaps));
}

// thread 1   | A | exited           another thread 1, later:  | ready | A | exited
// ticks     300 310                                         350     360 370
/// The sound trace, and two more threads and LWPs that had one number each, one after the other.
fn reused() -> Little {
    let mut little = sound();
    little.clear("info");
    little.info("schema_version", SCHEMA_VERSION).info("first_tick", 100).info("last_tick", 400);
    // What has no end reaches to the end of the trace.
    for table in ["lwps", "threads", "thread_states", "lwp_states", "active"] {
        little.clear(table);
    }
    for (ts, dur, state) in [
        (300, json!(10), "active"),
        (310, json!(null), "exited"),
        (350, json!(10), "ready"),
        (360, json!(10), "active"),
        (370, json!(null), "exited"),
    ] {
        little.row("thread_states", json!({"ts_tick": ts, "dur_tick": dur, "thread": 1, "state": state}));
    }
    for (ts, dur) in [(300, 10), (350, 20)] {
        little.row("threads", json!({"thread": 1, "ts_tick": ts, "dur_tick": dur, "active_tick": 10}));
        little.row("lwps", json!({"lwp": 10, "carries_threads": true, "on_cpu_tick": 10, "active_tick": 10, "unmounted_tick": 0}));
    }
    for ts in [300, 360] {
        little.row("active", json!({"ts_tick": ts, "dur_tick": 10, "thread": 1, "lwp": 10, "cpu": 0}));
        little.row(
            "lwp_states",
            json!({"ts_tick": ts, "dur_tick": 10, "lwp": 10, "state": "running", "cpu": 0}),
        );
    }
    little
}

#[tokio::test]
async fn a_reused_number_breaks_no_invariant() {
    assert_eq!(broken(&report(&reused()).await), [""; 0]);

    let mut little = reused();
    little.row(
        "lwps",
        json!({"lwp": 10, "carries_threads": true, "on_cpu_tick": 1, "active_tick": 1, "unmounted_tick": 0}),
    );
    little.row("threads", json!({"thread": 1, "ts_tick": 380, "dur_tick": 5, "active_tick": 0}));
    assert_eq!(broken(&report(&little).await), ["states-sum-to-life", "lwp-time-is-running"]);
}

#[tokio::test]
async fn an_empty_trace_breaks_no_invariant() {
    let report = report(&Little::new()).await;
    assert_eq!(broken(&report), [""; 0]);
    assert_eq!(report.item("events-in-order").unwrap().verdict, Verdict::NotApplicable);
    assert_eq!(report.trust(), Trust::Empty, "nothing found is not sound");
}

#[tokio::test]
async fn each_broken_invariant_is_reported_with_its_first_place() {
    let first = |report: &Report, name: &str| report.item(name).unwrap().detail.clone();

    let mut little = sound();
    little.clear("info");
    little.info("schema_version", SCHEMA_VERSION).info("last_tick", 200);
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
    assert_eq!((losses.verdict, r.trust()), (Verdict::Gaps, Trust::SoundWithGaps));
    let figures: Vec<_> = losses.figures.iter().map(|f| (f.name.as_str(), f.value)).collect();
    assert_eq!(figures, [("gap dropped", 2.0), ("gap dropped events", 10.0)]);
    assert_eq!(losses.detail, "gap dropped: lwp 10: a packet");
    little
        .row("losses", json!({"kind": "damaged", "level": "KERN", "severity": "serious", "detail": "cpu 2"}));
    assert_eq!(broken(&report(&little).await), ["losses"]);
}

/// ```text
/// LWP 10  |===CPU 0===| runnable |==CPU 1==|     stamped at 105, 108 and 119 on CPU 0
/// tick    100         120        150             the probes saw CPU 1, 0 and 1
/// ```
/// The last was moved between stamp and CPU. The first cannot have been: another event of the LWP lies between it and
/// the switch.
fn moved() -> Little {
    let mut little = Little::new();
    little.info("first_tick", 100).info("last_tick", 200).info("tick_hz", 1_000_000);
    little.info("witness_agree", 30_000).info("witness_disagree", 2).info("witness_single", 0);
    let user = |ts: i64, cpu: i64, seen: i64| json!({"ts_tick": ts, "level": "USER", "name": "step", "cpu": cpu, "lwp": 10, "thread": 5, "cpu_seen": seen});
    little.row("events", json!({"ts_tick": 100, "level": "KERN", "name": "sched_switch", "cpu": 0, "lwp": 7, "target_lwp": 10}));
    little.row("events", user(105, 0, 1)).row("events", user(108, 0, 0)).row("events", user(119, 0, 1));
    little.row("events", json!({"ts_tick": 120, "level": "KERN", "name": "sched_switch", "cpu": 0, "lwp": 10, "target_lwp": 7}));
    little.row("events", json!({"ts_tick": 130, "level": "KERN", "name": "irq", "cpu": 2, "lwp": 8}));
    little.row("events", user(160, 1, 1));
    let state = |ts: i64, dur: i64, state: &str, cpu: Option<i64>| json!({"ts_tick": ts, "dur_tick": dur, "lwp": 10, "state": state, "cpu": cpu, "end_reason": "x"});
    little.row("lwp_states", state(100, 20, "running", Some(0)));
    little.row("lwp_states", state(120, 30, "runnable", Some(0)));
    little.row("lwp_states", state(150, 50, "running", Some(1)));
    little.row("lwps", json!({"lwp": 10, "name": "worker", "carries_threads": true, "on_cpu_tick": 70, "unmounted_tick": 70, "witness_agree": 30_000, "witness_disagree": 2}));
    little
}

#[tokio::test]
async fn an_event_moved_between_stamp_and_cpu_is_distinct_from_an_unexplained_one() {
    let r = report(&moved()).await;
    let told: Vec<_> = r.disagreements.iter().map(|d| (d.tick.0, d.cause, d.left_after)).collect();
    let expected = [(105, Cause::OtherCpu, Some(Ticks(15))), (119, Cause::Moved, Some(Ticks(1)))];
    assert_eq!(told, expected);
    let moved = &r.disagreements[1];
    assert_eq!(
        (moved.cpu, moved.cpu_seen, moved.lwp, moved.thread),
        (Some(Cpu(0)), Cpu(1), Lwp(10), Some(Thread(5)))
    );
    // One of 30002 without a reason is bearable.
    assert_eq!(r.item("two-witnesses").unwrap().verdict, Verdict::Ok);
}

#[tokio::test]
async fn a_disagreement_is_listed_with_the_states_of_its_lwp_and_the_events_around_it() {
    let r = report(&moved()).await;
    let around = &r.disagreements[1].around;
    let states: Vec<_> = around.states.iter().map(|s| (s.tick.0, s.state.as_str(), s.cpu)).collect();
    let expected =
        [(100, "running", Some(Cpu(0))), (120, "runnable", Some(Cpu(0))), (150, "running", Some(Cpu(1)))];
    assert_eq!(states, expected);
    // Not the interrupt on CPU 2: it has nothing to do with it.
    let events: Vec<_> = around.events.iter().map(|e| (e.tick.0, e.name.as_str())).collect();
    let expected = [
        (100, "sched_switch"),
        (105, "step"),
        (108, "step"),
        (119, "step"),
        (120, "sched_switch"),
        (160, "step"),
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn more_than_one_in_ten_thousand_for_no_known_reason_break_the_invariant() {
    let mut little = moved();
    little.clear("info").info("schema_version", SCHEMA_VERSION).info("last_tick", 200);
    little.info("witness_agree", 9000).info("witness_disagree", 2);
    let r = report(&little).await;
    let item = r.item("two-witnesses").unwrap();
    assert_eq!(item.verdict, Verdict::Broken);
    assert!(
        item.detail.contains("0.0111 % differ for no known reason, expected at most 0.01 %"),
        "{}",
        item.detail
    );
}

/// ```text
/// LWP 11  |  sleeping  |===CPU 1===|      the stay begins with an event of its own, and not with a switch
/// tick    100          130
/// ```
#[tokio::test]
async fn an_event_of_an_off_cpu_lwp_is_distinct_from_one_on_another_cpu() {
    let mut little = Little::new();
    little.info("first_tick", 100).info("last_tick", 200);
    little.info("witness_agree", 30_000).info("witness_disagree", 1);
    let user =
        |ts: i64| json!({"ts_tick": ts, "level": "USER", "name": "step", "cpu": 1, "lwp": 11, "cpu_seen": 1});
    little.row("events", user(130)).row("events", user(140));
    little
        .row("lwp_states", json!({"ts_tick": 100, "dur_tick": 30, "lwp": 11, "state": "sleeping", "cpu": 1}));
    little
        .row("lwp_states", json!({"ts_tick": 130, "dur_tick": 70, "lwp": 11, "state": "running", "cpu": 1}));
    little.row("lwps", json!({"lwp": 11, "carries_threads": true, "on_cpu_tick": 70, "unmounted_tick": 70, "witness_disagree": 1}));
    let r = report(&little).await;
    let told: Vec<_> = r.disagreements.iter().map(|d| (d.tick.0, d.cause, d.cpu)).collect();
    assert_eq!(told, [(130, Cause::OffCpu, None)]);
    let item = r.item("two-witnesses").unwrap();
    assert_eq!(item.verdict, Verdict::Ok);
    assert!(
        item.detail.ends_with("; 1 on no CPU by sched_switch: some switches are not in the trace"),
        "{}",
        item.detail
    );
}

#[tokio::test]
async fn witnesses_are_counted_per_lwp_and_disagreeing_lwps_come_first() {
    let mut little = Little::new();
    for (lwp, events, agree, disagree) in [(20, 4, 3, 0), (21, 5, 3, 2)] {
        for tick in 0..events {
            little.row("events", json!({"ts_tick": 100 + tick, "level": "USER", "name": "e", "lwp": lwp}));
        }
        little.row("lwps", json!({"lwp": lwp, "name": format!("w{lwp}"), "carries_threads": true, "witness_agree": agree, "witness_disagree": disagree}));
    }
    little.row("lwps", json!({"lwp": 22, "name": "kernel only"}));
    let r = report(&little).await;
    let rows: Vec<_> = r
        .lwps
        .iter()
        .map(|l| (l.lwp.0, l.name.as_deref(), l.events, l.agree, l.disagree, l.single, l.percent()))
        .collect();
    assert_eq!(rows, [(21, Some("w21"), 5, 3, 2, 0, Some(60.0)), (20, Some("w20"), 4, 3, 0, 1, Some(100.0))]);
}

/// ```text
/// CPU 0   |==10==|  idle  |==10==|      a page of CPU 0 is lost from 110 to 160: LWP 10 and thread 1 were at work
/// LWP 10                                a packet of LWP 10 from 130 to 140: thread 1 was in the kernel
/// ```
#[tokio::test]
async fn a_gap_has_its_length_and_the_threads_active_across_it() {
    let mut little = sound();
    little.row("lwp_states", json!({"ts_tick": 161, "dur_tick": 5, "lwp": 44, "state": "running", "cpu": 0}));
    little.row("losses", json!({"kind": "dropped", "level": "KERN", "severity": "gap", "cpu": 0, "from_tick": 110, "to_tick": 160, "count": 38977, "detail": "a page"}));
    little.row("losses", json!({"kind": "dropped", "level": "USER", "severity": "gap", "lwp": 10, "from_tick": 130, "to_tick": 140, "count": 3, "detail": "a packet"}));
    little.row("losses", json!({"kind": "overwritten", "level": "USER", "severity": "note", "lwp": 10, "from_tick": 100, "to_tick": 199, "detail": "as it should be"}));
    let r = report(&little).await;
    let gaps: Vec<_> = r
        .gaps
        .iter()
        .map(|g| (g.level.as_str(), g.time(), g.events, &g.lwps.named[..], &g.threads.named[..]))
        .collect();
    assert_eq!(gaps[0], ("KERN", Some(Ticks(50)), Some(38977), &[Lwp(10)][..], &[Thread(1)][..]));
    assert_eq!(gaps[1], ("USER", Some(Ticks(10)), Some(3), &[Lwp(10)][..], &[Thread(1)][..]));
    assert_eq!(gaps.len(), 2, "what is only noted is no gap");
    let sources: Vec<_> = r.losses.iter().map(|l| (l.kind.as_str(), l.losses, l.events, l.time)).collect();
    assert_eq!(sources[0], ("dropped", 1, Some(38977), Some(Ticks(50))));
    assert_eq!(sources.len(), 3);
}

#[tokio::test]
async fn a_clock_that_is_off_is_a_gap() {
    let mut little = sound();
    little.info("tick_hz", 500_000_000);
    little.row("clocks", snapshot("realtime", 150, 35_000.0));
    let r = report(&little).await;
    let item = r.item("clocks-fit").unwrap();
    assert_eq!((item.verdict, r.trust()), (Verdict::Gaps, Trust::SoundWithGaps));
    assert_eq!(item.detail, "times of realtime are off by up to 35.0 us");
    let clocks: Vec<_> =
        r.clocks.iter().map(|c| (c.domain.as_str(), c.snapshots, c.bracket_ns, c.residual_ns)).collect();
    assert_eq!(clocks, [("monotonic", 2, Some(8.0), Some(0.5)), ("realtime", 1, Some(8.0), Some(35_000.0))]);
}

// The clocks of two machines: that of the other counts ticks. So does the main one, of which the rate is known; or not.
#[tokio::test]
async fn residuals_in_ticks_are_not_taken_for_nanoseconds() {
    let of = async |domain: &str, hz: Option<u64>| {
        let mut little = sound();
        little.clear("clocks").info("main_clock", "tsc");
        hz.iter().for_each(|hz| _ = little.info("tick_hz", hz));
        little.row("clocks", json!({"domain": domain, "tick": 7, "against": "monotonic", "before_ns": 100, "after_ns": 140, "residual_tick": -30_000.0}));
        let r = report(&little).await;
        let item = r.item("clocks-fit").unwrap();
        let clock = r.clocks[0].clone();
        assert_eq!(
            (clock.bracket_ns, clock.span_ns, clock.residual_tick),
            (Some(40.0), Some(40.0), Some(30_000.0))
        );
        (item.verdict, clock.residual_ns, item.figures[1].name.clone())
    };
    let ns = "largest residual ns".to_string();
    assert_eq!(of("tsc", Some(1_000_000_000)).await, (Verdict::Gaps, Some(30_000.0), ns.clone()));
    assert_eq!(of("tsc", Some(3_000_000_000)).await, (Verdict::Ok, Some(10_000.0), ns));
    let ticks = "largest residual in ticks of unknown rate".to_string();
    assert_eq!(of("tsc", None).await, (Verdict::NotApplicable, None, ticks.clone()));
    assert_eq!(of("counter", Some(3_000_000_000)).await, (Verdict::NotApplicable, None, ticks));
}

// LWP 10     |==running==| sleeps |==running==|      at 1 tick a nanosecond; `s` are events sched_stat_runtime
// by kernel  s           s                    s      20 ms, and 30 or 34.1 ms
#[tokio::test]
async fn an_lwp_whose_cpu_time_differs_from_the_kernels_sum_is_listed() {
    let ms = 1_000_000_i64;
    // What the kernel says of the second stay, for how long it is unknown what the LWP did, and the verdict.
    let cases = [
        (30 * ms, 0, Verdict::Ok),
        (33 * ms, 0, Verdict::Ok),
        (36 * ms, 0, Verdict::Gaps),
        (36 * ms, 5 * ms, Verdict::Ok),
        (20 * ms, 5 * ms, Verdict::Gaps),
    ];
    for (second, unknown, expected) in cases {
        let mut little = Little::new();
        little.info("first_tick", 0).info("last_tick", 200 * ms).info("tick_hz", 1_000_000_000);
        little.row(
            "event_types",
            json!({"level": "KERN", "name": "sched_stat_runtime", "source": "kernel", "events": 3,
            "field_names": ["pid", "runtime"], "field_types": ["i64", "u64"]}),
        );
        for (tick, runtime) in [(0, 77 * ms), (20 * ms, 20 * ms), (100 * ms, second)] {
            little.row(
                "events",
                json!({"ts_tick": tick, "level": "KERN", "name": "sched_stat_runtime", "lwp": 10,
                "args": [10, runtime]}),
            );
        }
        for (from, to, state) in [
            (0, 20 * ms, "running"),
            (20 * ms, 20 * ms + unknown, "unknown"),
            (20 * ms + unknown, 70 * ms, "sleeping"),
            (70 * ms, 150 * ms, "running"),
        ] {
            little.row(
                "lwp_states",
                json!({"ts_tick": from, "dur_tick": to - from, "lwp": 10, "state": state}),
            );
        }
        little.row("lwps", json!({"lwp": 10, "name": "worker", "on_cpu_tick": 100 * ms}));
        let report = report(&little).await;
        assert_eq!(report.item("cpu-times").map(|item| item.verdict), Some(expected), "{second} {unknown}");
        let listed: Vec<_> =
            report.cpu_times.iter().map(|t| (t.lwp, t.kernel_ns as i64, t.on_cpu_ns as i64)).collect();
        let all = [(Lwp(10), 20 * ms + second, 50 * ms)];
        assert_eq!(listed, if expected == Verdict::Ok { &all[..0] } else { &all[..] }, "{second} {unknown}");
    }
}

#[tokio::test]
async fn the_recorders_readings_of_cpu_time_are_compared_too() {
    let ms = 1_000_000_i64;
    for (read, expected) in [(100 * ms, Verdict::Ok), (109 * ms, Verdict::Ok), (111 * ms, Verdict::Gaps)] {
        let mut little = Little::new();
        little.info("first_tick", 0).info("last_tick", 200 * ms).info("tick_hz", 1_000_000_000);
        little.info("main_clock", "tsc").info("lwp_cpu_time_10", format!("0 {} {read}", 150 * ms));
        little.info("lwp_cpu_time_11", "no numbers at all");
        little.row("lwp_states", json!({"ts_tick": 0, "dur_tick": 100 * ms, "lwp": 10, "state": "running"}));
        little.row(
            "lwp_states",
            json!({"ts_tick": 100 * ms, "dur_tick": 100 * ms, "lwp": 10, "state": "sleeping"}),
        );
        let report = report(&little).await;
        assert_eq!(report.item("cpu-times").map(|item| item.verdict), Some(expected), "{read}");
    }
}
