//! `reactivity`: drawn by hand, and on random machines against growing the set tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{
    Machine, Now, TICKS,
    lives::change,
    sketch::{Drawing, at},
    slow_walk::{damage, mix},
};
use sigmund_measures::{
    Actor, Context, History, Interval, Mark, Request, Value, Wakeup, named, reactivity_pairs,
};
use sigmund_model::{LwpState, ThreadState};

fn text(value: &Value) -> String {
    if let Value::Text(text) = value { text.to_string() } else { "-".into() }
}

fn int(value: &Value) -> i64 {
    if let Value::Number(number) = value { *number } else { -1 }
}

// CPU 0     LWP 900, irq 10-12, softirq 12-16 wakes LWP 100 at 14
// LWP 100   |-- asleep, thread 1 in-kernel --|in queue of CPU 1|---- running, CPU 1, thread 1 ----|
//           0                                14                20                                 60
// LWP 901                                    |  on CPU 1       |
// thread 2  |---------------- blocked ------------------- 30 ready |-- active on LWP 101, CPU 2 --|
//           0                                             unparked 36                             60
// FROM 10 in the irq; 20 by LWP 900 (another key); 50 in no interrupt, by nobody
// TO   25 by thread 3, 44 by thread 2
fn drawn() -> History {
    use LwpState::{Runnable, Running, Sleeping};
    use ThreadState::{Active, Blocked, InKernel, Ready, Stalled};
    let mut drawing = Drawing::default();
    drawing
        .thread(1, &[(0, 14, InKernel, 100), (14, 20, Stalled, 100), (20, 60, Active, 100)])
        .thread(2, &[(0, 30, Blocked, 0), (30, 36, Ready, 0), (36, 60, Active, 101)])
        .thread(3, &[(0, 60, Active, 102)])
        .lwp(100, &[(0, 14, Sleeping, 1), (14, 20, Runnable, 1), (20, 60, Running, 1)])
        .lwp(101, &[(0, 60, Running, 2)])
        .lwp(102, &[(0, 60, Running, 3)])
        .lwp(900, &[(0, 60, Running, 0)])
        .lwp(901, &[(0, 20, Running, 1)])
        .interrupt(10, 12, 0, "irq")
        .interrupt(12, 16, 0, "softirq")
        .wakeup(14, 6, Context::Softirq, Actor::Lwp(900), Actor::Lwp(100))
        .wakeup(30, 6, Context::Task, Actor::Thread(1), Actor::Thread(2));
    let mut mark = |tick, cpu, context, lwp, thread, key, is_from| {
        let mark =
            Mark { tick, cpu: Some(cpu), context, lwp: Some(lwp), thread, key, is_from, is_to: !is_from };
        drawing.0.history().marks.push(mark);
    };
    mark(44, 2, Context::Task, 101, Some(2), 0, false);
    mark(25, 3, Context::Task, 102, Some(3), 0, false);
    mark(10, 0, Context::Irq, 900, None, 1, true);
    mark(20, 0, Context::Task, 900, None, 2, true);
    mark(50, 0, Context::Idle, 0, None, 1, true);
    let mut history = drawing.build();
    // These are of another process than the threads.
    for lwp in [102, 900, 901] {
        change(&mut history.names.lwps, lwp, |life| life.pid = Some(7));
    }
    history
}

#[test]
fn an_interrupt_is_followed_through_both_levels() {
    let history = drawn();
    let pairs = reactivity_pairs(&history, &Request::default()).unwrap();
    let named_cells = |row: &Vec<Value>| -> BTreeMap<String, i64> {
        let cells = pairs.columns.iter().zip(row).filter(|(column, _)| column.name.ends_with("_tick"));
        cells
            .map(|(column, cell)| (column.name.to_string(), int(cell)))
            .filter(|(_, ticks)| *ticks > 0)
            .collect()
    };
    let expected = |cells: &[(&str, i64)]| cells.iter().map(|(name, t)| (name.to_string(), *t)).collect();
    assert_eq!(pairs.rows.len(), 2);
    assert_eq!(
        (text(&pairs.rows.to_vec()[0][3]), text(&pairs.rows.to_vec()[1][3])),
        ("caused".into(), "next".into())
    );
    assert_eq!(
        named_cells(&pairs.rows.to_vec()[0]),
        expected(&[
            ("from_tick", 10),
            ("to_tick", 44),
            ("dur_tick", 34),
            ("interrupt_tick", 2),
            ("softirq_tick", 2),
            ("waiting_for_a_cpu_tick", 6),
            ("waiting_for_an_lwp_tick", 6),
            ("running_tick", 8),
            ("another_running_tick", 10),
        ])
    );
    assert_eq!(
        named_cells(&pairs.rows.to_vec()[1]),
        expected(&[("from_tick", 20), ("to_tick", 25), ("dur_tick", 5), ("running_tick", 5)])
    );

    let answer = named("reactivity").unwrap().answer(&history, &Request::default()).unwrap();
    let row = |row: &Vec<Value>| (text(&row[1]), text(&row[2]), int(&row[3]), int(&row[4]));
    let line =
        |what: &str, culprit: &str, count, total| (what.to_string(), culprit.to_string(), count, total);
    assert_eq!(
        answer.rows.to_vec().iter().map(row).collect::<Vec<_>>(),
        [
            line("all", "-", 2, 39),
            line("caused", "-", 1, 34),
            line("next", "-", 1, 5),
            line("from", "-", 1, -1),
            line("another running", "1", 1, 10),
            line("running", "2", 1, 8),
            line("waiting for a CPU", "LWP 901", 1, 6),
            line("running", "3", 1, 5),
            line("waiting for an LWP", "1", 1, 3),
            line("waiting for an LWP", "LWP without a thread", 1, 3),
            line("interrupt", "irq 1", 1, 2),
            line("softirq", "softirq 1", 1, 2),
        ]
    );
}

#[test]
fn a_member_that_blocks_again_leaves() {
    let mut history = drawn();
    // Thread 1 has been woken, and waits before it unparks thread 2: that was not because of FROM.
    let states =
        [(14, 20, ThreadState::Stalled), (20, 22, ThreadState::Blocked), (22, 60, ThreadState::Active)];
    let mut drawing = Drawing::default();
    let states = states.map(|(from, to, state)| (from, to, state, 100));
    history.threads = drawing.thread(1, &states).build().threads;
    let pairs = reactivity_pairs(&history, &Request::default()).unwrap();
    assert!(pairs.rows.to_vec().iter().all(|row| text(&row[3]) == "next"));
}

// thread 1  |---- active ----|-- blocked --|
//           0    10 FROM    30 TO: the event that blocks it
#[test]
fn the_event_by_which_a_member_blocks_is_its_own() {
    let mut drawing = Drawing::default();
    drawing
        .thread(1, &[(0, 30, ThreadState::Active, 100), (30, 60, ThreadState::Blocked, 0)])
        .lwp(100, &[(0, 60, LwpState::Running, 0)]);
    for (tick, is_from) in [(10, true), (30, false), (30, true), (30, false)] {
        drawing.0.history().marks.push(Mark {
            tick,
            cpu: Some(0),
            context: Context::Task,
            lwp: Some(100),
            thread: Some(1),
            key: u64::from(tick == 10),
            is_from,
            is_to: !is_from,
        });
    }
    let pairs = reactivity_pairs(&drawing.build(), &Request::default()).unwrap();
    let found: Vec<_> =
        pairs.rows.to_vec().iter().map(|row| (int(&row[0]), int(&row[1]), text(&row[3]))).collect();
    assert_eq!(found, [(10, 30, "caused".into()), (30, 30, "caused".into())]);
}

fn actor(thread: Option<u64>, lwp: Option<u32>) -> Option<Actor> {
    thread.map(Actor::Thread).or(lwp.filter(|lwp| *lwp != 0).map(Actor::Lwp))
}

/// Whether an actor begins to wait at a tick.
fn begins_to_wait(ticks: &[Now], actor: Actor, tick: i64) -> bool {
    let state = |tick: i64| {
        let now = &ticks[tick as usize];
        match actor {
            Actor::Thread(thread) => format!("{:?}", now.threads[thread as usize - 1]),
            Actor::Lwp(lwp) => {
                let lwp = now.lwps[lwp as usize - 100];
                format!("{:?} {}", lwp.state, lwp.cpu)
            }
        }
    };
    let waits = ["Blocked", "InKernel", "Sleeping"].iter().any(|word| state(tick).contains(word));
    waits && (tick == 0 || state(tick) != state(tick - 1))
}

/// The interrupts that are because of the one that is innermost on a CPU at a tick: it, and softirqs after it.
fn because_of(ticks: &[Now], history: &History, cpu: u32, tick: i64, limit: i64) -> Vec<(u32, Interval)> {
    let innermost = |tick: i64| {
        let open = |place: &usize| {
            let interrupt = &history.interrupts[*place];
            interrupt.cpu == cpu && interrupt.interval.contains(tick)
        };
        (0..history.interrupts.len()).filter(open).max_by_key(|place| history.interrupts[*place].depth)
    };
    let Some(handler) = innermost(tick) else { return Vec::new() };
    let mut set = vec![handler];
    let mut until = history.interrupts[handler].interval.to;
    for later in tick..limit.min(TICKS) {
        if ticks[later as usize].cpus[cpu as usize] != ticks[tick as usize].cpus[cpu as usize] {
            break;
        }
        let Some(place) = innermost(later).filter(|place| !set.contains(place)) else { continue };
        let interrupt = &history.interrupts[place];
        if interrupt.interval.from < until {
            continue;
        }
        if history.words.text(interrupt.kind) != "softirq" {
            break;
        }
        set.push(place);
        until = until.max(interrupt.interval.to);
    }
    set.into_iter().map(|place| (place as u32, history.interrupts[place].interval)).collect()
}

/// The first TO event that a FROM event caused.
fn caused(ticks: &[Now], history: &History, from: usize, limit: i64, is_used: &[bool]) -> Option<usize> {
    let mark = &history.marks[from];
    let is_interrupt = |context| matches!(context, Context::Irq | Context::Softirq);
    let mut members: BTreeSet<Actor> = BTreeSet::new();
    let mut interrupts = Vec::new();
    if is_interrupt(mark.context) {
        interrupts = because_of(ticks, history, mark.cpu.unwrap(), mark.tick, limit);
    } else {
        members.extend(actor(mark.thread, mark.lwp));
    }
    for tick in mark.tick..limit.min(TICKS) {
        let leaving: Vec<Actor> =
            members.iter().copied().filter(|member| begins_to_wait(ticks, *member, tick)).collect();
        members.retain(|member| !leaving.contains(member));
        loop {
            let before = members.len();
            for wakeup in history.wakeups.iter().filter(|wakeup| wakeup.tick == tick) {
                let by_member = |wakeup: &Wakeup| {
                    actor(wakeup.waker_thread, wakeup.waker_lwp).is_some_and(|waker| members.contains(&waker))
                };
                let by_handler = |wakeup: &Wakeup| {
                    let of_cpu =
                        history.interrupts.iter().enumerate().filter(|(_, other)| {
                            Some(other.cpu) == wakeup.cpu && other.interval.contains(tick)
                        });
                    let innermost =
                        of_cpu.max_by_key(|(_, other)| other.depth).map(|(place, _)| place as u32);
                    interrupts.iter().any(|(place, _)| Some(*place) == innermost)
                };
                let follows =
                    if is_interrupt(wakeup.context) { by_handler(wakeup) } else { by_member(wakeup) };
                if follows {
                    let lwp = wakeup.lwp.filter(|_| !wakeup.is_unpark).map(Actor::Lwp);
                    let woken = lwp.into_iter().chain(wakeup.thread.map(Actor::Thread));
                    members.extend(woken.filter(|woken| !begins_to_wait(ticks, *woken, tick)));
                }
            }
            if members.len() == before {
                break;
            }
        }
        let answers = |place: &usize| {
            let mark = &history.marks[*place];
            let is_member = actor(mark.thread, mark.lwp)
                .is_some_and(|actor| members.contains(&actor) || leaving.contains(&actor));
            mark.is_to && mark.tick == tick && !is_used[*place] && is_member
        };
        if let Some(place) = (from + 1..history.marks.len()).find(answers) {
            return Some(place);
        }
    }
    None
}

#[test]
fn pairs_are_those_of_growing_the_set_tick_by_tick() {
    let (mut counts, mut causes) = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..300 {
        let mut machine = Machine::new(seed);
        let is_damaged = seed % 4 == 3;
        if is_damaged {
            damage(&mut machine, seed);
        }
        let (ticks, mut history) = machine.history();
        history.marks = crate::support::marks::marks(&ticks, seed);
        let softirq = history.words.intern("softirq");
        for (place, interrupt) in history.interrupts.iter_mut().enumerate() {
            if mix(seed, 50 + place as u64).is_multiple_of(2) {
                interrupt.kind = softirq;
            }
        }
        for wakeup in &mut history.wakeups {
            let open = |other: &&sigmund_measures::Interrupt| {
                Some(other.cpu) == wakeup.cpu && other.interval.contains(wakeup.tick)
            };
            let innermost = history.interrupts.iter().filter(open).max_by_key(|other| other.depth);
            if wakeup.context == Context::Irq && innermost.is_some_and(|other| other.kind == softirq) {
                wakeup.context = Context::Softirq;
            }
        }
        let window = if seed % 3 == 0 { at(40, 350) } else { at(0, TICKS) };
        let inside = |mark: &Mark| (window.from..=window.to).contains(&mark.tick);
        let from: Vec<usize> = (0..history.marks.len())
            .filter(|place| history.marks[*place].is_from && inside(&history.marks[*place]))
            .collect();
        for mark in &mut history.marks {
            mark.is_to &= (window.from..=window.to).contains(&mark.tick);
        }
        let mut is_used = vec![false; history.marks.len()];
        let mut expected = BTreeMap::new();
        for (order, place) in from.iter().enumerate().filter(|_| !is_damaged) {
            let same = |next: &&usize| history.marks[**next].key == history.marks[*place].key;
            let limit =
                from[order + 1..].iter().find(same).map_or(window.to + 1, |next| history.marks[*next].tick);
            if let Some(to) = caused(&ticks, &history, *place, limit, &is_used) {
                is_used[to] = true;
                expected.insert(*place, (to, true));
            }
        }
        for place in &from {
            if !expected.contains_key(place)
                && let Some(to) =
                    (place + 1..history.marks.len()).find(|to| history.marks[*to].is_to && !is_used[*to])
            {
                is_used[to] = true;
                expected.insert(*place, (to, false));
            }
        }
        let request = Request { window, ..Request::default() };
        let pairs = reactivity_pairs(&history, &request).unwrap();
        let tick = |place: usize| history.marks[place].tick;
        let mut expected: Vec<(i64, i64, String)> = expected
            .iter()
            .map(|(from, (to, is_caused))| {
                (tick(*from), tick(*to), if *is_caused { "caused" } else { "next" }.to_string())
            })
            .collect();
        expected.sort();
        let mut found: Vec<_> =
            pairs.rows.to_vec().iter().map(|row| (int(&row[0]), int(&row[1]), text(&row[3]))).collect();
        found.sort();
        if !is_damaged {
            assert_eq!(found, expected, "seed {seed}");
        }
        let mut total = 0;
        for row in &pairs.rows.to_vec() {
            *counts.entry(text(&row[3])).or_insert(0) += 1;
            assert_eq!(
                row[7..row.len() - 1].iter().map(int).sum::<i64>(),
                int(&row[2]),
                "causes sum to the length"
            );
            total += int(&row[2]);
        }
        // The summary has the same sums, and counts every FROM event.
        let answer = named("reactivity").unwrap().answer(&history, &request).unwrap();
        let rows = |kind: &str| {
            answer.rows.to_vec().iter().filter(|row| text(&row[0]) == kind).cloned().collect::<Vec<_>>()
        };
        if from.is_empty() {
            continue;
        }
        assert_eq!(rows("cause").iter().map(|row| int(&row[4])).sum::<i64>(), total);
        assert_eq!(int(&rows("pairs")[0][3]) + int(&rows("unmatched")[0][3]), from.len() as i64);
        for row in rows("cause") {
            *causes.entry(text(&row[1])).or_insert(0) += int(&row[4]);
        }
        // The longest are listed first.
        let worst = reactivity_pairs(&history, &Request { worst: 3, ..request }).unwrap();
        assert_eq!(worst.rows.to_vec(), pairs.rows.to_vec()[..pairs.rows.len().min(3)]);
        assert!(pairs.rows.to_vec().is_sorted_by_key(|row| -int(&row[2])));
    }
    assert!(counts["caused"] > 300 && counts["next"] > 300, "{counts:?}");
    assert!(causes.len() >= 9 && causes.values().filter(|ticks| **ticks > 500).count() >= 9, "{causes:?}");
}
