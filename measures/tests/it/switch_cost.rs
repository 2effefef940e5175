//! `switch-cost`: drawn by hand, and on random machines against searching the events around each switch.

use std::{collections::BTreeMap, sync::Arc};

use crate::support::{
    CPUS, LWPS, Now, TICKS,
    damage::{is_damaged, some_damaged},
    drawn::{Drawn, ask, cells, number_in, text_in},
    number,
    slow_walk::mix,
    tid,
};
use sigmund_measures::{By, EventAt, Gap, History, Interval, Request};
use sigmund_model::{EndReason::*, LwpState, ThreadState};

// CPU 0   70 70 switch|    80  switch|  0 (idle) switch|   70   gap   80
//         3  5  10         14   20              30         33   35-37 39
// thread   1  1  -          2   -                              (LWP 70 with 1, LWP 80 with 2)
// CPU 1   81 (thread 3), 81 (thread 4), off from 50 to 60, 81 (thread 3)
//         41             45                                65
fn drawn() -> History {
    use LwpState::{Running, Sleeping};
    let on_one = [(0, Running, 1, Slept), (50, Sleeping, 1, Dispatched), (60, Running, 1, TraceEnd)];
    let mut drawn = Drawn::default().lwp(81, 8, &on_one, 100);
    for lwp in [70, 80] {
        drawn = drawn.lwp(lwp, 8, &[(0, Running, 0, TraceEnd)], 100);
    }
    for thread in [1, 2, 3, 4] {
        drawn = drawn.thread(thread, 8, &[(0, sigmund_model::ThreadState::Active, 81, TraceEnd)], 100);
    }
    let on_zero = [
        (3, 70, Some(1)),
        (5, 70, Some(1)),
        (10, 70, None),
        (14, 80, Some(2)),
        (20, 80, None),
        (30, 0, None),
    ];
    let later = [(33, 70, None), (39, 80, None)];
    let event = |cpu| move |(tick, lwp, thread)| EventAt::new(tick, Some(lwp), Some(cpu), thread);
    let history = drawn.builder.history();
    history.events = on_zero.into_iter().chain(later).map(event(0)).collect();
    let on_one = [(41, 81, Some(3)), (43, 81, None), (45, 81, Some(4)), (65, 81, Some(3)), (66, 81, Some(4))];
    history.events.extend(on_one.map(event(1)));
    history.gaps =
        Arc::new(vec![Gap { interval: Interval::new(35, 37), cpu: Some(0), lwp: None, is_sum: false }]);
    drawn.build()
}

#[test]
fn a_switch_costs_at_most_the_time_between_the_events_around_it() {
    let history = drawn();
    let of_lwps = Request { by: Some(By::Lwp), ..Request::default() };
    let answer = ask("switch-cost", &history, &of_lwps);
    let columns = ["from", "count", "total_tick"];
    let with_lwp = ["lwp", columns[0], columns[1], columns[2]];
    assert_eq!(cells(&answer, &with_lwp), ["80 other 1 4", "70 idle 1 3"]);
    assert_eq!(answer.notes, ["1 switches are not counted: events are missing in them."]);
    // From 41 to 45, with an interrupt inside; from 45 to 65 LWP 81 was not on a CPU; from 65 to 66.
    let answer = ask("switch-cost", &history, &Request::default());
    assert_eq!(cells(&answer, &["thread", columns[0], columns[1], columns[2]]), ["4 other 2 5"]);
    let window = Request { window: Interval::new(50, 70), ..Request::default() };
    assert_eq!(cells(&ask("switch-cost", &history, &window), &columns), ["other 1 1"]);
}

// LWP 70 on CPU 0, switch at 10|70 unknown 10..14, LWP 80 from 10: first event at 12; back at 20, 70 seen at 23.
// A loss without a place sums up contradictions from 0 to 30.
#[test]
fn a_switch_in_which_a_state_is_unknown_is_not_counted_and_others_near_it_are() {
    use LwpState::{Running, Unknown};
    let of_70 = [(0, Running, 0, Lost), (10, Unknown, 0, Resync), (14, Running, 0, TraceEnd)];
    let of_80 = [(0, Running, 0, TraceEnd)];
    let mut drawn = Drawn::default().lwp(70, 7, &of_70, 30).lwp(80, 7, &of_80, 30);
    let events = [(5, 70), (10, 70), (12, 80), (20, 80), (23, 70)];
    let history = drawn.builder.history();
    history.events = events.map(|(tick, lwp)| EventAt::new(tick, Some(lwp), Some(0), None)).into();
    history.gaps = Arc::new(vec![Gap { interval: Interval::new(0, 30), cpu: None, lwp: None, is_sum: true }]);
    let answer = ask("switch-cost", &drawn.build(), &Request { by: Some(By::Lwp), ..Request::default() });
    assert_eq!(cells(&answer, &["lwp", "from", "count", "total_tick"]), ["70 other 1 3"]);
    assert_eq!(answer.notes, ["1 switches are not counted: events are missing in them."]);
}

/// Events here and there, and one at each switch.
fn events(seed: u64, ticks: &[Now]) -> Vec<EventAt> {
    let mut events = Vec::new();
    for tick in 1..TICKS {
        let [before, now] = [tick - 1, tick].map(|tick| &ticks[tick as usize]);
        for cpu in 0..CPUS {
            let lwp = |now: &Now| Some(now.cpus[cpu].map_or(0, tid));
            let thread = |now: &Now| now.cpus[cpu].and_then(|lwp| now.lwps[lwp].carries).map(number);
            let at = |now: &Now, thread| EventAt::new(tick, lwp(now), Some(cpu as u32), thread);
            if now.cpus[cpu] != before.cpus[cpu] {
                events.push(at(before, None));
            } else if thread(now) != thread(before) && thread(before).is_some() {
                events.push(at(before, thread(before)));
            }
            let chance =
                (seed + 1).wrapping_mul(tick as u64 * 2 + cpu as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if chance >> 62 == 0 {
                let in_task = now.interrupts[cpu].is_empty();
                events.push(at(now, thread(now).filter(|_| in_task)));
            }
        }
    }
    events
}

/// Losses of a CPU, of an LWP, of everything, and contradictions summed up.
fn gaps(seed: u64) -> Vec<Gap> {
    let gap = |place: u64| {
        let random = mix(seed, 7000 + place);
        let from = (random % TICKS as u64) as i64;
        let interval = Interval::new(from, from + 1 + (random >> 20) as i64 % 15);
        let cpu = place.is_multiple_of(3).then_some((random >> 30) as u32 % CPUS as u32);
        let lwp = (place % 3 == 1).then_some(tid((random >> 40) as usize % LWPS));
        Gap { interval, cpu, lwp, is_sum: place == 2 }
    };
    let mut gaps: Vec<Gap> = (0..6).map(gap).collect();
    gaps.sort_by_key(|gap| gap.interval);
    gaps
}

/// Whether events of a CPU or LWP may be missing between two ticks.
fn is_lost(gaps: &[Gap], cpu: Option<u32>, lwp: Option<u32>, (from, to): (i64, i64)) -> bool {
    gaps.iter().any(|gap| {
        let is_of_all = gap.cpu.is_none() && gap.lwp.is_none() && !gap.is_sum;
        let is_it = is_of_all || gap.cpu.is_some() && gap.cpu == cpu || gap.lwp.is_some() && gap.lwp == lwp;
        is_it && gap.interval.from < to && from < gap.interval.to
    })
}

#[derive(Default)]
struct Costs {
    counted: BTreeMap<(i64, String), Vec<i64>>,
    /// Those in which a state is unknown, or events may be missing.
    uncounted: usize,
}

impl Costs {
    fn add(&mut self, who: i64, from: &str, ticks: i64, is_known: bool) {
        if is_known {
            self.counted.entry((who, from.into())).or_default().push(ticks);
        } else {
            self.uncounted += 1;
        }
    }
}

/// For each switch of a CPU the first event of the LWP that came, up to its leaving.
fn lwps(
    ticks: &[Now],
    History { events, gaps, .. }: &History,
    window: Interval,
    carries: impl Fn(Option<usize>) -> bool,
) -> Costs {
    let mut costs = Costs::default();
    for cpu in 0..CPUS {
        // Every switch has an event, also one of an LWP whose state is in doubt.
        let on = |tick: i64| ticks[tick as usize].cpus[cpu];
        for switch in (1..TICKS).filter(|tick| on(*tick) != on(*tick - 1)) {
            let Some(lwp) = on(switch) else { continue };
            let left = (switch..TICKS).find(|tick| on(*tick) != on(switch)).unwrap_or(TICKS);
            let is_first = |event: &&EventAt| {
                (event.cpu(), event.lwp()) == (Some(cpu as u32), Some(tid(lwp)))
                    && (switch..=left).contains(&event.tick())
            };
            let Some(first) = events.iter().find(is_first) else { continue };
            let carried = ticks[first.tick() as usize].lwps[lwp].carries;
            if window.contains(first.tick()) && carries(carried) {
                let from = if on(switch - 1).is_none() { "idle" } else { "other" };
                let is_unknown = |tick: i64| {
                    let state = |lwp: usize| ticks[tick as usize].lwps[lwp].state;
                    [Some(lwp), on(switch - 1)]
                        .into_iter()
                        .flatten()
                        .any(|lwp| state(lwp) == LwpState::Unknown)
                };
                let is_lost = is_lost(gaps, Some(cpu as u32), None, (switch, first.tick()));
                let is_known = !is_lost && !(switch..first.tick()).any(is_unknown);
                costs.add(tid(lwp).into(), from, first.tick() - switch, is_known);
            }
        }
    }
    costs
}

/// For each event of a user thread the one of a user thread before it on that LWP, if the LWP ran all the while.
fn threads(ticks: &[Now], History { events, gaps, .. }: &History, window: Interval) -> Costs {
    let mut costs = Costs::default();
    for lwp in 0..LWPS {
        let of_lwp: Vec<&EventAt> =
            events.iter().filter(|event| event.lwp() == Some(tid(lwp)) && event.thread().is_some()).collect();
        for pair in of_lwp.windows(2).filter(|pair| pair[0].thread() != pair[1].thread()) {
            let (from, to) = (pair[0].tick(), pair[1].tick());
            let runs = |tick: i64| ticks[tick as usize].lwps[lwp].state == LwpState::Running;
            if window.contains(to) && (from..to.max(from + 1)).all(runs) {
                let is_unknown = |tick: i64| {
                    let state = |thread: u64| ticks[tick as usize].threads[thread as usize - 1].state;
                    pair.iter().any(|event| state(event.thread().unwrap()) == ThreadState::Unknown)
                };
                let is_lost = is_lost(gaps, pair[1].cpu(), Some(tid(lwp)), (from, to));
                let is_known = !is_lost && !(from..to).any(is_unknown);
                costs.add(pair[1].thread().unwrap() as i64, "other", to - from, is_known);
            }
        }
    }
    costs
}

#[test]
fn switch_costs_are_those_of_searching_around_each_switch() {
    let (mut seen_any, mut uncounted) = (0, 0);
    for seed in 0..300 {
        let (ticks, mut history) = some_damaged(seed).history();
        history.events = events(seed, &ticks);
        if is_damaged(seed) {
            history.gaps = Arc::new(gaps(seed));
        }
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let some = |thread: Option<usize>| matches!(thread, Some(0 | 3));
        let selected = || Some([number(0), number(3)].into());
        for (by, column, threads, expected) in [
            (By::Lwp, "lwp", None, lwps(&ticks, &history, window, |_| true)),
            (By::Lwp, "lwp", selected(), lwps(&ticks, &history, window, some)),
            (By::Thread, "thread", None, threads(&ticks, &history, window)),
        ] {
            let request = Request { window, by: Some(by), threads, ..Request::default() };
            let answer = ask("switch-cost", &history, &request);
            let mut seen = BTreeMap::new();
            for row in &answer.rows.to_vec() {
                let key = (number_in(&answer, row, column), text_in(&answer, row, "from"));
                let figures = ["count", "total_tick", "min_tick", "max_tick"];
                seen.insert(key, figures.map(|figure| number_in(&answer, row, figure)));
                seen_any += number_in(&answer, row, "count");
            }
            let figures = |lengths: &Vec<i64>| {
                let (min, max) = (*lengths.iter().min().unwrap(), *lengths.iter().max().unwrap());
                [lengths.len() as i64, lengths.iter().sum(), min, max]
            };
            let figures: BTreeMap<_, _> =
                expected.counted.iter().map(|(key, lengths)| (key.clone(), figures(lengths))).collect();
            assert_eq!(seen, figures, "seed {seed} {by:?}");
            let number = |note: &String| note.split_once(" switches").unwrap().0.parse().unwrap();
            let number: usize = answer.notes.first().map_or(0, number);
            assert_eq!(number, expected.uncounted, "seed {seed} {by:?}");
            uncounted += number;
        }
    }
    assert!(seen_any > 10_000 && uncounted > 200, "{seen_any} {uncounted}");
}
