//! `critical-path`: drawn by hand, and on random machines against walking tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{
    Machine, TICKS,
    drawing::{Drawing, listing},
    sketch::{at, one_span},
    slow_walk::{Slow, damage, mix},
};
use sigmund_measures::{Actor, By, History, Interval, Request, Value, What, critical_path_chains, named};
use sigmund_model::{LwpState, ThreadState};

fn text(value: &Value) -> String {
    if let Value::Text(text) = value { text.to_string() } else { "-".into() }
}

fn int(value: &Value) -> i64 {
    if let Value::Number(number) = value { *number } else { -1 }
}

fn ask(history: &History, request: &Request) -> Vec<(String, String, i64, i64)> {
    let answer = named("critical-path").unwrap().answer(history, request).unwrap();
    let row = |row: &Vec<Value>| (text(&row[0]), text(&row[1]), int(&row[2]), int(&row[3]));
    answer.rows.to_vec().iter().map(row).collect()
}

// `two_levels` of support/drawing.rs; thread 1 is in the span from 5 to 55:
//   thread 2 |run|irq|run|stalled by 900|run to 40, unparks|, thread 1 |ready|run|
//            5   12  15  20             30                 40          50    55
#[test]
fn the_path_of_a_span_is_by_whom_it_was_held_up() {
    let history = one_span(5, 55);
    let window = at(5, 60);
    let request = Request { subject: Some("request".into()), window, ..Request::default() };
    let row =
        |cause: &str, culprit: &str, count, ticks| (cause.to_string(), culprit.to_string(), count, ticks);
    assert_eq!(
        ask(&history, &request),
        [
            row("running", "2", 3, 22),
            row("waiting for a CPU", "LWP 900", 1, 10),
            row("running", "1", 1, 5),
            // LWP 100 slept, LWP 101 carried thread 2.
            row("waiting for an LWP", "2", 1, 5),
            row("waiting for an LWP", "LWP asleep", 1, 5),
            row("interrupt", "irq 1", 1, 3),
        ]
    );
    // The other instance is all running; in a window each is cut.
    let all = Request { window: at(2, 50), ..request.clone() };
    assert_eq!(ask(&history, &all).iter().map(|row| row.3).sum::<i64>(), 45 + 1);

    let chain = critical_path_chains(&history, &request).unwrap();
    let cells = |row: &Vec<Value>| {
        let [instance, ts, dur, thread, lwp, cpu] = [0, 1, 2, 3, 4, 6].map(|place| int(&row[place]));
        assert_eq!(instance, 1);
        (ts, dur, thread, lwp, cpu, format!("{}: {}: {}", text(&row[7]), text(&row[8]), text(&row[9])))
    };
    let woke = "woke 1 from mutex 0x10";
    assert_eq!(
        chain.rows.to_vec().iter().map(cells).collect::<Vec<_>>(),
        [
            (5, 7, 2, 101, 1, format!("running: {woke}: -")),
            (12, 3, 2, 101, 1, format!("interrupt: {woke}: irq 1")),
            (15, 5, 2, 101, 1, format!("running: {woke}: -")),
            (20, 10, 2, 101, 1, format!("waiting for a CPU: {woke}: LWP 900")),
            (30, 10, 2, 101, 1, format!("running: {woke}: -")),
            (40, 10, 1, -1, -1, "waiting for an LWP: -: 2 50 %, LWP asleep 50 %".to_string()),
            (50, 5, 1, 101, 1, "running: -: -".to_string()),
        ]
    );
}

// thread 1, `main`, in the span `work` |---------------------- stalled ---------------------------|active|
// CPU 0                                |client/1|request|client/2|request|client/3|    compiler    | main |
//                                      0        20      40       55      65       70               90    100
fn behind_many() -> History {
    use LwpState::{Runnable, Running, Sleeping};
    let mut drawing = Drawing::default();
    drawing.thread(
        1,
        "main",
        &[(0, ThreadState::Stalled, Some(101)), (90, ThreadState::Active, Some(101))],
        100,
    );
    drawing.lwp(101, "pool/1", &[(0, Runnable, 0), (90, Running, 0)], 100);
    let others = [
        (201, "client/1", 0, 20),
        (202, "request", 20, 40),
        (203, "client/2", 40, 55),
        (204, "request", 55, 65),
        (205, "client/3", 65, 70),
        (206, "compiler", 70, 90),
    ];
    for (lwp, name, from, to) in others {
        let asleep_first = (from > 0).then_some((0, Sleeping, 0));
        let states: Vec<_> =
            asleep_first.into_iter().chain([(from, Running, 0), (to, Sleeping, 0)]).collect();
        drawing.lwp(lwp, name, &states, 100);
    }
    drawing.span(1, "work", (0, 100), 0, None);
    drawing.build(100)
}

#[test]
fn culprits_of_a_wait_are_grouped_before_the_first_three_are_chosen() {
    let history = behind_many();
    let culprits = |by| {
        let request = Request { subject: Some("work".into()), worst: 1, by, ..Request::default() };
        let answer = named("critical-path").unwrap().answer(&history, &request).unwrap();
        listing(&answer, "what culprit")[0].clone()
    };
    let wait = |culprits: &str| format!("waiting for a CPU {culprits}");
    assert_eq!(culprits(None), wait("LWP 201(client/1) 22 %, LWP 202(request) 22 %, LWP 206(compiler) 22 %"));
    assert_eq!(culprits(Some(By::Name)), wait("request 33 %, client/1 22 %, compiler 22 %"));
    assert_eq!(culprits(Some(By::Pattern)), wait("client/* 44 %, request 33 %, compiler 22 %"));
    assert_eq!(culprits(Some(By::Process)), wait("process 70"));
}

#[test]
fn a_chain_names_whom_its_pieces_are_of() {
    let history = behind_many();
    let rows = |request: &Request| {
        listing(&critical_path_chains(&history, request).unwrap(), "ts_tick dur_tick thread lwp name what")
    };
    let of_span = Request { subject: Some("work".into()), ..Request::default() };
    assert_eq!(rows(&of_span), ["0 90 1 101 main waiting for a CPU", "90 10 1 101 main running"]);
    let of_lwp = Request { lwps: Some([203].into()), window: at(40, 55), ..Request::default() };
    assert_eq!(rows(&of_lwp), ["40 15 - 203 client/2 running"]);
}

#[test]
fn the_life_of_a_thread_has_a_path_and_others_are_refused() {
    let history = one_span(5, 55);
    let life = Request { threads: Some(BTreeSet::from([1])), window: at(0, 60), ..Request::default() };
    assert_eq!(ask(&history, &life).iter().map(|row| row.3).sum::<i64>(), 60);
    let measure = named("critical-path").unwrap();
    for (request, error) in [
        (Request::default(), "one user thread or LWP, found 0"),
        (Request { threads: Some(BTreeSet::from([1, 2])), ..Request::default() }, "found 2"),
        (
            Request { subject: Some("requst".into()), ..Request::default() },
            "found `requst`; the trace has request",
        ),
    ] {
        let found = measure.answer(&history, &request).unwrap_err();
        assert!(found.contains(error), "{found}");
    }
}

#[test]
fn totals_are_those_of_walking_every_instance_tick_by_tick() {
    let mut seen = BTreeMap::new();
    for seed in 0..250 {
        let mut machine = Machine::new(seed);
        damage(&mut machine, seed);
        let interrupts = machine.interrupts.clone();
        let (ticks, history) = machine.history();
        let place =
            |interrupt| history.interrupts.iter().position(|other| other == interrupt).unwrap() as u32;
        let interrupts: Vec<u32> = interrupts.iter().map(place).collect();
        let slow = Slow { ticks: &ticks, history: &history, interrupts };
        let window = if seed % 2 == 0 { Interval::ALL } else { at(50, 50 + (mix(seed, 1) % 300) as i64) };
        let threads = (seed % 5 == 0).then(|| BTreeSet::from([1, 2, 4]));
        let Some(name) = history.words.get("request") else { continue };
        let mut expected: BTreeMap<(String, String), i64> = BTreeMap::new();
        let mut add =
            |cause: &str, culprit: String| *expected.entry((cause.into(), culprit)).or_default() += 1;
        for span in history.spans.iter().filter(|span| span.name == Some(name)) {
            let thread = span.thread.unwrap();
            if threads.as_ref().is_some_and(|threads| !threads.contains(&thread)) {
                continue;
            }
            let (from, to) =
                (span.interval.from.max(window.from), span.interval.to.min(window.to).min(TICKS));
            for (step, tick) in slow.walk(Actor::Thread(thread), from, to).into_iter().enumerate() {
                let (actor, _, cpu, what) = tick;
                let culprit = match what {
                    What::Running => actor.label(&history),
                    What::WaitingForCpu => {
                        let blame = slow.had_cpu(cpu.unwrap() as usize, to - 1 - step as i64);
                        blame.label(&history, By::Thread).unwrap()
                    }
                    // Of what remains only the sums by cause are compared.
                    _ => "-".into(),
                };
                add(what.name(), culprit);
            }
        }
        let request = Request { window, threads, subject: Some("request".into()), ..Request::default() };
        let mut found: BTreeMap<(String, String), i64> = BTreeMap::new();
        for (cause, culprit, count, ticks) in ask(&history, &request) {
            assert!(count > 0 && ticks > 0);
            let is_compared = matches!(cause.as_str(), "running" | "waiting for a CPU");
            let culprit = if is_compared { culprit } else { "-".into() };
            *found.entry((cause, culprit)).or_default() += ticks;
        }
        assert_eq!(found, expected, "seed {seed}");
        for ((cause, _), ticks) in found {
            *seen.entry(cause).or_insert(0) += ticks;
        }
    }
    assert!(seen.len() >= 8 && seen.values().all(|ticks| *ticks > 500), "{seen:?}");
}
