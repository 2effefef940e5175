//! `functions` and folded stacks, drawn by hand, and on random machines against counting tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::damage::some_damaged;
use crate::support::drawing::{Drawing, listing};
use crate::support::{THREADS, TICKS, number};
use sigmund_measures::{Answer, By, FOLDED, History, Interval, Request, named};
use sigmund_model::{LwpState, ThreadState};

const COLUMNS: &str = "kind function inclusive_tick self_tick inclusive_active_tick self_active_tick active_unknown count total_tick max_tick";

fn ask(history: &History, request: &Request) -> Answer {
    named("functions").unwrap().answer(history, request).unwrap()
}

//          0      10     20     30     40     50     60     70     80     90    100
// thread 1 |active              |stalled|active on 102              |unknown|active
// main     |========================================================================| 0..100
// walk            |=========================|                                         10..50
// walk                   |===========|                                                20..40
// leaf                                         |====| 55..60, function, active told by the trace: 5
// late                                                        |=======|               65..85
// thread 2, named `o;ne` too: walk 0..10, of length 10, ready all the time
fn drawn() -> History {
    use ThreadState::*;
    let mut drawing = Drawing::default();
    let states = [
        (0, Active, Some(101)),
        (30, Stalled, Some(101)),
        (40, Active, Some(102)),
        (80, Unknown, None),
        (90, Active, Some(101)),
    ];
    drawing.thread(1, "o;ne", &states, 100);
    drawing.thread(2, "o;ne", &[(0, Active, Some(103)), (5, Ready, None)], 100);
    drawing.lwp(101, "pool/1", &[(0, LwpState::Running, 3)], 100);
    drawing.span(1, "main", (0, 100), 0, None);
    drawing.span(1, "walk", (10, 50), 1, None);
    drawing.span(1, "walk", (20, 40), 2, None);
    drawing.span(1, "leaf", (55, 60), 1, Some(5));
    drawing.edit().spans.last_mut().unwrap().is_function = true;
    drawing.span(1, "late", (65, 85), 1, None);
    drawing.span(2, "walk", (0, 10), 0, None);
    drawing.build(100)
}

#[test]
fn recursion_counts_once_and_self_time_leaves_out_what_is_inside() {
    let history = drawn();
    let all = ask(&history, &Request::default());
    assert_eq!(
        listing(&all, COLUMNS),
        [
            // 100 - 40 - 5 - 20.
            "span main 100 35 - - 1 1 100 100",
            // Inclusive 40 + 10; self 20 + 20 + 10; active 30 + 5; self active 20 + 10 + 5.
            "span walk 50 50 35 35 0 3 70 40",
            "span late 20 20 - - 1 1 20 20",
            "function leaf 5 5 5 5 0 1 5 5",
        ]
    );
    // The thread's state is known there: main is active 5 + 35, and 40 - 20 - 5 - 10 itself.
    let cut = Request { window: Interval::new(25, 75), by: Some(By::Thread), ..Request::default() };
    assert_eq!(
        listing(&ask(&history, &cut), &format!("thread {COLUMNS}")),
        [
            // Of walk 25..50 and 25..40.
            "1 span main 50 10 40 10 0 1 50 50",
            "1 span walk 25 25 15 15 0 2 40 25",
            "1 span late 10 10 10 10 0 1 10 10",
            "1 function leaf 5 5 5 5 0 1 5 5",
        ]
    );
    let walk = Request { subject: Some("walk".into()), threads: Some([2].into()), ..Request::default() };
    assert_eq!(listing(&ask(&history, &walk), "function self_tick self_active_tick"), ["walk 10 5"]);
    let elsewhere = Request { cpus: Some([4].into()), ..Request::default() };
    assert_eq!(ask(&history, &elsewhere).rows.len(), 0);
}

/// A line for each stack.
fn folded(history: &History, request: &Request) -> String {
    let answer = FOLDED.answer(history, request).unwrap();
    listing(&answer, "stack self_active_tick").iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn folded_stacks_have_a_line_for_each_stack() {
    let history = drawn();
    let lines = "o:ne;main;leaf 5\no:ne;main;walk 20\no:ne;main;walk;walk 10\no:ne;walk 5\n";
    assert_eq!(folded(&history, &Request::default()), lines);
    let by = Request { by: Some(By::Thread), subject: Some("leaf".into()), ..Request::default() };
    assert_eq!(folded(&history, &by), "1(o:ne);main;leaf 5\n");
    assert_eq!(folded(&History::default(), &Request::default()), "");
}

/// What a call adds to a row, counted tick by tick.
#[derive(Default)]
struct Counted {
    ticks: i64,
    own: i64,
    active: i64,
    own_active: i64,
    /// In unknown state or mounted.
    unknown: i64,
    /// Whether it is inside of another one of its name.
    is_inside: bool,
    stack: String,
}

#[test]
fn times_are_those_of_counting_every_tick() {
    let mut unknown = 0;
    for seed in 0..300 {
        let (ticks, history) = some_damaged(seed).history();
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let name = |place: usize| history.words.text(history.spans[place].name.unwrap()).to_string();
        // The history has the spans of the machine in another order: sorted, as they are found at a tick by depth.
        let mut calls: BTreeMap<usize, Counted> = BTreeMap::new();
        let mut outermost = 0;
        for tick in (0..TICKS).filter(|tick| window.contains(*tick)) {
            let now = &ticks[tick as usize];
            for thread in 0..THREADS {
                let state = now.threads[thread].state;
                let is_active = i64::from(state == ThreadState::Active);
                let is_unknown = i64::from(matches!(state, ThreadState::Unknown | ThreadState::Mounted));
                let mut open: Vec<usize> = (0..history.spans.len())
                    .filter(|place| {
                        let span = &history.spans[*place];
                        span.thread == Some(number(thread)) && span.interval.contains(tick)
                    })
                    .collect();
                open.sort_by_key(|place| history.spans[*place].depth);
                assert_eq!(open.len(), now.spans[thread].len());
                let names: Vec<String> = open.iter().map(|place| name(*place)).collect();
                for (depth, place) in open.iter().enumerate() {
                    let call = calls.entry(*place).or_default();
                    call.ticks += 1;
                    call.active += is_active;
                    call.unknown += is_unknown;
                    call.is_inside = names[..depth].contains(&names[depth]);
                    call.stack = format!("work/{thread};{}", names[..=depth].join(";"));
                }
                let Some(innermost) = open.last() else { continue };
                let call = calls.entry(*innermost).or_default();
                call.own += 1;
                call.own_active += is_active;
                outermost += 1;
            }
        }
        let mut rows: BTreeMap<(u64, String), [i64; 2]> = BTreeMap::new();
        // Of the calls whose active time is known; none if there is no such call.
        let mut active: BTreeMap<(u64, String), [Option<i64>; 2]> = BTreeMap::new();
        let mut unknowns: BTreeMap<(u64, String), i64> = BTreeMap::new();
        let mut stacks: BTreeMap<String, i64> = BTreeMap::new();
        for (place, call) in &calls {
            let key = (history.spans[*place].thread.unwrap(), name(*place));
            let [inclusive, own] = rows.entry(key.clone()).or_default();
            let [inclusive_active, own_active] = active.entry(key.clone()).or_default();
            let is_known = call.unknown == 0;
            *own += call.own;
            *inclusive += if call.is_inside { 0 } else { call.ticks };
            *unknowns.entry(key).or_default() += i64::from(!is_known);
            unknown += i64::from(!is_known);
            if is_known {
                *own_active.get_or_insert(0) += call.own_active;
                *stacks.entry(call.stack.clone()).or_default() += call.own_active;
                if !call.is_inside {
                    *inclusive_active.get_or_insert(0) += call.active;
                }
            }
        }
        let answer = ask(&history, &Request { window, by: Some(By::Thread), ..Request::default() });
        let columns =
            "thread function inclusive_tick self_tick inclusive_active_tick self_active_tick active_unknown";
        let found: BTreeSet<String> = listing(&answer, columns).into_iter().collect();
        let cell = |cell: Option<i64>| cell.map_or("-".into(), |cell| cell.to_string());
        let expected = rows.iter().map(|(key, [inclusive, own])| {
            let ([active, own_active], unknown) = (active[key].map(cell), unknowns[key]);
            format!("{} {} {inclusive} {own} {active} {own_active} {unknown}", key.0, key.1)
        });
        let nothing = |row: &String| row.ends_with(" 0 0 0 0 0");
        let found: BTreeSet<String> = found.into_iter().filter(|row| !nothing(row)).collect();
        assert_eq!(found, expected.collect(), "seed {seed}");
        let own = listing(&answer, "self_tick").iter().map(|own| own.parse::<i64>().unwrap()).sum::<i64>();
        assert_eq!(own, outermost, "seed {seed}: self times sum to the time in spans");
        let expected: BTreeSet<String> = stacks
            .iter()
            .filter(|(_, ticks)| **ticks > 0)
            .map(|(stack, ticks)| format!("{stack} {ticks}"))
            .collect();
        let found = folded(&history, &Request { window, ..Request::default() });
        assert_eq!(found.lines().map(String::from).collect::<BTreeSet<_>>(), expected, "seed {seed}");
    }
    assert!(unknown > 100, "{unknown}");
}
