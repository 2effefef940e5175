//! `explain`: drawn by hand, and on random machines against walking tick by tick.

use std::{collections::BTreeMap, sync::Arc};

use crate::support::{
    Machine, TICKS,
    lives::change,
    sketch::{Drawing, at, one_span},
    slices::rebuilt,
    slow_walk::{Slow, damage, mix},
};
use sigmund_measures::{
    Actor, Gap, History, Interval, LockRequest, Request, Slice, Span, Value, What, named,
};
use sigmund_model::{EndReason, LwpState, ThreadState, WaitKind};

#[derive(Clone, Debug, PartialEq)]
struct Row {
    band: String,
    category: String,
    who: String,
    waits_for: String,
    culprit: String,
    instances: i64,
    total: i64,
    mean: i64,
}

fn ask(history: &History, request: &Request) -> Vec<Row> {
    let text = |value: &Value| if let Value::Text(text) = value { text.to_string() } else { "-".into() };
    let int = |value: &Value| if let Value::Number(number) = value { *number } else { -1 };
    let row = |row: &Vec<Value>| Row {
        band: text(&row[0]),
        category: text(&row[1]),
        who: text(&row[2]),
        waits_for: text(&row[3]),
        culprit: text(&row[4]),
        instances: int(&row[5]),
        total: int(&row[6]),
        mean: int(&row[7]),
    };
    named("explain").unwrap().answer(history, request).unwrap().rows.to_vec().iter().map(row).collect()
}

fn request() -> Request {
    Request { subject: Some("request".into()), ..Request::default() }
}

// `two_levels` of support/drawing.rs: one instance from 5 to 55, which thread 2 holds up, and one from 1 to 3, all active.
#[test]
fn the_slow_instance_differs_by_what_the_holder_did() {
    let mut history = one_span(5, 55);
    for (thread, name) in [(1, "work/1"), (2, "work/2")] {
        change(&mut history.names.threads, thread, |life| life.name = Some(name));
    }
    let rows = ask(&history, &request());
    let shown = |band: &str| -> Vec<(String, i64)> {
        let of_band = rows.iter().filter(|row| row.band == band);
        let of = |row: &Row| format!("{} {} {} {}", row.category, row.who, row.waits_for, row.culprit);
        of_band.map(|row| (of(row), row.mean)).collect()
    };
    let expected =
        |rows: &[(&str, i64)]| rows.iter().map(|(name, t)| (name.to_string(), *t)).collect::<Vec<_>>();
    assert_eq!(
        shown("99-100 minus 0-50"),
        expected(&[
            ("duration - - -", 48),
            ("active another mutex 0x10 held by work/* -", 22),
            ("ready itself - -", 10),
            ("stalled another mutex 0x10 held by work/* -", 10),
            ("active itself - -", 3),
            ("interrupted another mutex 0x10 held by work/* -", 3),
        ])
    );
    assert_eq!(
        shown("99-100"),
        expected(&[
            ("duration - - -", 50),
            ("active another mutex 0x10 held by work/* 2(work/2)", 22),
            ("stalled another mutex 0x10 held by work/* LWP 900", 10),
            ("active itself - -", 5),
            ("ready itself - 2(work/2)", 5),
            ("ready itself - LWP asleep", 5),
            ("interrupted another mutex 0x10 held by work/* irq 1", 3),
        ])
    );
    assert_eq!(shown("0-50"), expected(&[("duration - - -", 2), ("active itself - -", 2)]));
    assert_eq!(rows[0].band, "99-100 minus 0-50");
    let slowest: Vec<_> = rows.iter().filter(|row| row.band == "slowest 10").collect();
    assert_eq!((slowest[0].instances, slowest[0].total, slowest[0].mean), (2, 52, 26));
}

// Thread 1 asked for the mutex 0x10 at 10 and got it at 50: it is ready from 40 on.
#[test]
fn a_thread_that_is_ready_waits_for_the_lock_that_it_is_given() {
    let mut history = one_span(5, 55);
    change(&mut history.names.threads, 2, |life| life.name = Some("work/2"));
    let kind = history.words.intern("mutex");
    history.locks.push(LockRequest {
        tick: 10,
        wait: Some(40),
        hold: Some(5),
        thread: Some(1),
        lwp: Some(101),
        cpu: None,
        object: 0x10,
        kind,
        holder: Some(2),
        holder_lwp: None,
        is_contended: true,
        call_site: None,
        end: EndReason::Released,
    });
    let rows = ask(&rebuilt(&history), &request());
    let of = |row: &&Row| row.band == "99-100 minus 0-50" && row.category == "ready";
    let ready: Vec<_> = rows.iter().filter(of).map(|row| (row.waits_for.as_str(), row.mean)).collect();
    assert_eq!(ready, [("mutex 0x10 held by work/*", 10)]);
}

#[test]
fn instances_that_touch_a_gap_or_the_window_are_apart() {
    let apart = |history: &History, request: &Request| -> Vec<(String, i64, i64)> {
        let rows = ask(history, request).into_iter().filter(|row| row.category == "duration");
        rows.map(|row| (row.band, row.instances, row.total)).collect()
    };
    let row = |band: &str, instances, total| (band.to_string(), instances, total);
    // Thread 1 has no state from 60 on.
    let history = one_span(5, 70);
    let first = [row("0-50", 1, 2), row("slowest 10", 1, 2)];
    assert_eq!(apart(&history, &request()), [&first[..], &[row("touches a gap", 1, 65)]].concat());
    let mut history = one_span(5, 55);
    let window = Request { window: at(0, 54), ..request() };
    assert_eq!(apart(&history, &window), [&first[..], &[row("cut off", 1, 50)]].concat());
    history.spans[0].end = EndReason::Lost;
    assert_eq!(apart(&history, &request()), [&first[..], &[row("touches a gap", 1, 50)]].concat());
    history.spans[0].end = EndReason::TraceEnd;
    assert_eq!(apart(&history, &request()), [&first[..], &[row("cut off", 1, 50)]].concat());
    let error = named("explain").unwrap().answer(&history, &Request::default()).unwrap_err();
    assert_eq!(error, "expected the name of a span or function, or FROM and TO, found none");
}

#[test]
fn instances_that_touch_a_gap_are_found_before_all_are_walked() {
    // Only whole walks are told of interrupts.
    let walks = |history: &History| {
        let (mut explain, slice) = (named("explain").unwrap().start(&request()), Slice::whole(Interval::ALL));
        let mut walks = 0;
        for _ in 0..10 {
            walks += usize::from(explain.needs().is_some_and(|needs| needs.interrupts));
            explain.add(history, slice).unwrap();
            if explain.is_done(history).unwrap() {
                return walks;
            }
        }
        panic!("it is never done");
    };
    assert_eq!(walks(&one_span(5, 55)), 1);
    // Thread 1 has no state from 10 to 20.
    let mut drawing = Drawing::default();
    drawing.thread(1, &[(0, 10, ThreadState::Active, 100), (20, 60, ThreadState::Active, 100)]);
    let mut history = drawing.lwp(100, &[(0, 60, LwpState::Running, 0)]).build();
    let name = Some(history.words.intern("request"));
    history.spans = one_span(5, 55).spans.into_iter().map(|span| Span { name, ..span }).collect();
    let of_gaps = |history: &History| {
        let rows = ask(history, &request());
        rows.into_iter()
            .filter(|row| row.band == "touches a gap")
            .map(|row| row.instances)
            .collect::<Vec<_>>()
    };
    assert_eq!((of_gaps(&history), walks(&history)), (vec![1], 2));
    // That it may lack some is known before.
    let gap = Gap { interval: at(0, 60), cpu: None, lwp: None, is_sum: true };
    history.gaps = Arc::new(vec![gap]);
    assert_eq!((of_gaps(&history), walks(&history)), (vec![1], 1));
}

fn category(what: What) -> &'static str {
    match what {
        What::Running => "active",
        What::Interrupt(_) => "interrupted",
        What::WaitingForCpu => "stalled",
        What::WaitingForLwp => "ready",
        What::WaitingFor(_) => "waiting",
        What::BlockedOn { .. } => "blocked",
        What::InSystemCall(_) => "in-kernel",
        What::Mounted => "mounted",
        What::Unknown => "unknown",
    }
}

#[test]
fn bands_are_those_of_walking_every_instance_tick_by_tick() {
    let mut gaps = 0;
    for seed in 0..250 {
        let mut machine = Machine::new(seed);
        damage(&mut machine, seed);
        let interrupts = machine.interrupts.clone();
        let (ticks, mut history) = machine.history();
        if seed % 3 == 0 {
            history.gaps = Arc::new(vec![Gap { interval: at(0, TICKS), cpu: None, lwp: None, is_sum: true }]);
        }
        let place =
            |interrupt| history.interrupts.iter().position(|other| other == interrupt).unwrap() as u32;
        let interrupts: Vec<u32> = interrupts.iter().map(place).collect();
        let slow = Slow { ticks: &ticks, history: &history, interrupts };
        let window = if seed % 2 == 0 { Interval::ALL } else { at(20, 150 + (mix(seed, 1) % 250) as i64) };
        let Some(name) = history.words.get("request") else { continue };

        let (mut whole, mut gap, mut cut) = (Vec::new(), 0, 0);
        for span in history.spans.iter().filter(|span| span.name == Some(name)) {
            let (Interval { from, to }, thread) = (span.interval, Actor::Thread(span.thread.unwrap()));
            if to < window.from || window.to.min(TICKS) <= from || (to == window.from && from < to) {
                continue;
            }
            if from < window.from || to > window.to.min(TICKS) || span.end == EndReason::TraceEnd {
                cut += 1;
                continue;
            }
            let mut sums: BTreeMap<(String, String, String), i64> = BTreeMap::new();
            for ((actor, _, _, what), wait) in slow.walk_with_waits(thread, from, to) {
                let who = if actor == thread { "itself" } else { "another" };
                let is_blocked = matches!(what, What::BlockedOn { .. });
                let wait = if is_blocked { Some(what) } else { wait.filter(|_| actor != thread) };
                let waits_for = match wait {
                    Some(What::BlockedOn { kind: Some(WaitKind::Mutex), object }) => {
                        format!("mutex {object:#x}")
                    }
                    Some(What::BlockedOn { kind: Some(kind), .. }) => kind.name().to_string(),
                    Some(What::InSystemCall(Some(call))) => history.words.text(call).to_string(),
                    _ => "-".to_string(),
                };
                *sums.entry((category(what).into(), who.into(), waits_for)).or_default() += 1;
            }
            let is_known = sums.keys().all(|(category, ..)| category != "unknown");
            if is_known { whole.push((to - from, from, to, thread, sums)) } else { gap += 1 }
        }
        whole.sort();
        let rows = ask(&history, &Request { window, ..request() });
        let count = whole.len();
        let is_in = |band: &str, rank: usize| match band {
            "0-50" => rank <= count.div_ceil(2),
            "slowest 10" => rank + 10 > count,
            _ => {
                let (median, p90, p99) =
                    (count.div_ceil(2), (count * 9).div_ceil(10), (count * 99).div_ceil(100));
                let band_of = match rank {
                    _ if rank <= median => "0-50",
                    _ if rank >= p99 => "99-100",
                    _ if rank <= p90 => "50-90",
                    _ => "90-99",
                };
                band == band_of
            }
        };
        for band in ["0-50", "50-90", "90-99", "99-100", "slowest 10"] {
            let mut expected: BTreeMap<(String, String, String), i64> = BTreeMap::new();
            let inside = whole.iter().enumerate().filter(|(place, _)| is_in(band, place + 1));
            let (mut instances, mut duration) = (0, 0);
            for (_, (length, _, _, _, sums)) in inside {
                (instances, duration) = (instances + 1, duration + length);
                for (key, ticks) in sums {
                    *expected.entry(key.clone()).or_default() += ticks;
                }
            }
            let of_band: Vec<&Row> = rows.iter().filter(|row| row.band == band).collect();
            let (all, parts): (Vec<&Row>, Vec<&Row>) =
                of_band.iter().partition(|row| row.category == "duration");
            let mut found: BTreeMap<(String, String, String), i64> = BTreeMap::new();
            for row in &parts {
                let waits_for = row.waits_for.split(" held by ").next().unwrap().to_string();
                *found.entry((row.category.clone(), row.who.clone(), waits_for)).or_default() += row.total;
                assert!((row.mean * instances - row.total).abs() < instances, "{row:?}");
            }
            assert_eq!(found, expected, "seed {seed}, {band}");
            let Some(all) = all.first() else {
                assert_eq!(instances, 0, "seed {seed}, {band}");
                continue;
            };
            assert_eq!((all.instances, all.total, all.mean), (instances, duration, duration / instances));
            assert_eq!(parts.iter().map(|row| row.mean).sum::<i64>(), all.mean, "seed {seed}, {band}");
        }
        let of_band = |band: &str| rows.iter().filter(|row| row.band == band).cloned().collect::<Vec<Row>>();
        let apart = |band: &str| of_band(band).first().map_or(0, |row| row.instances);
        assert_eq!((apart("touches a gap"), apart("cut off")), (gap, cut), "seed {seed}");
        gaps += gap;
        // The differences sum to that of the mean durations.
        if let ([all, parts @ ..], [slow, ..], [median, ..]) = (
            of_band("99-100 minus 0-50").as_slice(),
            of_band("99-100").as_slice(),
            of_band("0-50").as_slice(),
        ) {
            assert_eq!(parts.iter().map(|row| row.mean).sum::<i64>(), all.mean);
            let exact = slow.total * median.instances - median.total * slow.instances;
            assert_eq!(all.mean, exact.div_euclid(slow.instances * median.instances));
        }
    }
    assert!(gaps > 50, "{gaps}");
}
