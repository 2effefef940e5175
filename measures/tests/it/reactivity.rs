//! `reactivity`: drawn by hand, and on random machines against growing the set tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{
    Machine, Now, TICKS,
    damage::had_cpu,
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

/// An event of FROM or TO, on CPU 0 and of nobody.
fn event(tick: i64, is_from: bool) -> Mark {
    Mark {
        tick,
        cpu: Some(0),
        context: Context::Task,
        lwp: None,
        thread: None,
        target_lwp: None,
        target_thread: None,
        key: 0,
        is_from,
        is_to: !is_from,
    }
}

/// Begin, end and pairing of each pair, in the order of the answer.
fn found(history: &History, request: &Request) -> Vec<(i64, i64, String)> {
    let pairs = reactivity_pairs(history, request).unwrap();
    pairs.rows.to_vec().iter().map(|row| (int(&row[0]), int(&row[1]), text(&row[3]))).collect()
}

/// The causes of all pairs, with their ticks.
fn causes(history: &History, request: &Request) -> Vec<String> {
    let answer = named("reactivity").unwrap().answer(history, request).unwrap();
    let rows = answer.rows.to_vec();
    let causes = rows.iter().filter(|row| text(&row[0]) == "cause");
    causes.map(|row| format!("{} {} {}", text(&row[1]), text(&row[2]), int(&row[4]))).collect()
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
        let mark = Mark { cpu: Some(cpu), context, lwp: Some(lwp), thread, key, ..event(tick, is_from) };
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
            lwp: Some(100),
            thread: Some(1),
            key: u64::from(tick == 10),
            ..event(tick, is_from)
        });
    }
    let found = found(&drawing.build(), &Request::default());
    assert_eq!(found, [(10, 30, "caused".into()), (30, 30, "caused".into())]);
}

// thread 1 on LWP 100  |--active-----------------------|    FROM 10, FROM 30
// thread 2 on LWP 101  |--active-----------------------|    TO 12, TO 36
// thread 3 on LWP 102  |--active-----------------------|    TO 50
#[test]
fn filters_choose_among_all_pairs() {
    let mut drawing = Drawing::default();
    for (thread, lwp) in [(1, 100), (2, 101), (3, 102)] {
        drawing.thread(thread, &[(0, 60, ThreadState::Active, lwp)]);
        drawing.lwp(lwp, &[(0, 60, LwpState::Running, lwp - 100)]);
    }
    let marks = [(10, 1, true), (12, 2, false), (30, 1, true), (36, 2, false), (50, 3, false), (55, 1, true)];
    for (tick, thread, is_from) in marks {
        let (lwp, cpu) = (Some(99 + thread), Some(thread - 1));
        let mark = Mark { lwp, cpu, thread: Some(u64::from(thread)), ..event(tick, is_from) };
        drawing.0.history().marks.push(mark);
    }
    let history = drawing.build();
    let next = |from, to| (from, to, "next".to_string());
    assert_eq!(found(&history, &Request::default()), [next(30, 36), next(10, 12)]);
    // TO 50 is of no pair, and is none if it alone is selected.
    for request in [
        Request { threads: Some([3].into()), ..Request::default() },
        Request { lwps: Some([102].into()), ..Request::default() },
        Request { cpus: Some([2].into()), ..Request::default() },
    ] {
        assert_eq!(found(&history, &request), []);
        let answer = named("reactivity").unwrap().answer(&history, &request).unwrap();
        let counts: Vec<_> = answer.rows.to_vec().iter().map(|row| (text(&row[1]), int(&row[3]))).collect();
        let row = |name: &str, count| (name.to_string(), count);
        assert_eq!(counts, [row("all", 0), row("caused", 0), row("next", 0), row("from", 1)]);
    }
    let second = Request { threads: Some([2].into()), ..Request::default() };
    assert_eq!(found(&history, &second).len(), 2);
}

// CPU 0    idle |timer irq 10-12|softirq 12-16|  |disk irq 20-22|softirq 23-25| LWP 100 from 30 |disk irq 40-44|
//                                                                                     timer irq, nested: 41-43
#[test]
fn an_interrupt_reaches_the_events_in_its_handler_and_softirqs() {
    let mut drawing = Drawing::default();
    drawing.lwp(
        100,
        &[(0, 5, LwpState::Running, 0), (5, 30, LwpState::Sleeping, 0), (30, 60, LwpState::Running, 0)],
    );
    for (from, to, kind) in [(10, 12, "irq"), (12, 16, "softirq"), (20, 22, "irq"), (23, 25, "softirq")] {
        drawing.interrupt(from, to, 0, kind);
    }
    drawing.interrupt(40, 44, 0, "irq").interrupt(41, 43, 0, "irq");
    drawing.0.history().interrupts.last_mut().unwrap().depth = 1;
    let history = |marks: &[(i64, u32, bool)]| {
        let mut drawing = drawing.0.clone();
        let mark = |(tick, lwp, is_from): &(i64, u32, bool)| Mark {
            context: Context::Irq,
            lwp: Some(*lwp),
            ..event(*tick, *is_from)
        };
        drawing.history().marks = marks.iter().map(mark).collect();
        drawing.history().extent = Some(at(0, 100));
        drawing.build()
    };
    let pairs = |marks: &[(i64, u32, bool)]| found(&history(marks), &Request::default());
    let pair = |from, to, pairing: &str| (from, to, pairing.to_string());
    // Entry to exit.
    assert_eq!(pairs(&[(10, 0, true), (12, 0, false)]), [pair(10, 12, "caused")]);
    // Entry to the entry, an event and the exit of its softirq; on an idle CPU the time is the interrupts'.
    for to in [12, 14, 16] {
        assert_eq!(pairs(&[(10, 0, true), (to, 0, false)]), [pair(10, to, "caused")]);
    }
    let marks = [(20, 0, true), (25, 0, false)];
    assert_eq!(pairs(&marks), [pair(20, 25, "caused")]);
    assert_eq!(
        causes(&history(&marks), &Request::default()),
        ["interrupt irq 1 2", "softirq softirq 1 2", "unknown unknown 1"]
    );
    // From the exit to the softirq.
    assert_eq!(pairs(&[(22, 0, true), (24, 0, false)]), [pair(22, 24, "caused")]);
    // Another interrupt, and one that is inside of it, are not because of it.
    assert_eq!(pairs(&[(10, 0, true), (22, 0, false)]), [pair(10, 22, "next")]);
    assert_eq!(pairs(&[(40, 100, true), (42, 100, false)]), [pair(40, 42, "next")]);
    // The exit of one that is inside of another is its own, and one of that.
    assert_eq!(pairs(&[(41, 100, true), (43, 100, false)]), [pair(41, 43, "caused")]);
    assert_eq!(pairs(&[(40, 100, true), (44, 100, false)]), [pair(40, 44, "caused")]);
    assert_eq!(
        causes(&history(&[(40, 100, true), (44, 100, false)]), &Request::default()),
        ["interrupt irq 1 4"]
    );
}

// CPU 0    unknown |irq 10-12| unknown |LWP 100 from 20: switched in by then |softirq 25-27|
#[test]
fn a_softirq_after_the_next_switch_is_not_because_of_the_interrupt() {
    let mut drawing = Drawing::default();
    drawing.lwp(100, &[(20, 60, LwpState::Running, 0)]);
    drawing.interrupt(10, 12, 0, "irq").interrupt(25, 27, 0, "softirq");
    for (tick, is_from) in [(10, true), (25, false)] {
        let mark = Mark { context: Context::Irq, lwp: Some(0), ..event(tick, is_from) };
        drawing.0.history().marks.push(mark);
    }
    assert_eq!(found(&drawing.build(), &Request::default()), [(10, 25, "next".into())]);
}

// CPU 0    idle                |wakes LWP 100 at 20
// LWP 100  |-- asleep ---------|runnable|-- running, CPU 1 --|
//          0                   20       28                   60
// LWP 901  |-- running, CPU 1 ----------|
// FROM: LWP 100 is woken (by the idle task); TO: LWP 901 leaves CPU 1 for LWP 100
#[test]
fn a_wakeup_reaches_the_switch_to_the_one_that_it_wakes() {
    let mut drawing = Drawing::default();
    drawing
        .lwp(
            100,
            &[
                (0, 20, LwpState::Sleeping, 1),
                (20, 28, LwpState::Runnable, 1),
                (28, 60, LwpState::Running, 1),
            ],
        )
        .lwp(901, &[(0, 28, LwpState::Running, 1), (28, 60, LwpState::Sleeping, 1)])
        .wakeup(20, 8, Context::Idle, Actor::Lwp(0), Actor::Lwp(100));
    let target_lwp = Some(100);
    let woken = Mark { context: Context::Idle, lwp: Some(0), target_lwp, ..event(20, true) };
    let switch = Mark { cpu: Some(1), lwp: Some(901), target_lwp, ..event(28, false) };
    drawing.0.history().marks = vec![woken, switch];
    let history = drawing.build();
    let answer = reactivity_pairs(&history, &Request::default()).unwrap();
    assert_eq!(found(&history, &Request::default()), [(20, 28, "caused".into())]);
    assert_eq!(answer.rows.to_vec()[0][6], Value::from(100_u32));
    // What it waited for, and not what the other one did.
    assert_eq!(causes(&history, &Request::default()), ["waiting for a CPU LWP 901 8"]);
    // It is an event of the one that arrives, so it is selected by that.
    for (lwp, count) in [(100, 1), (901, 0)] {
        let request = Request { lwps: Some([lwp].into()), ..Request::default() };
        assert_eq!(found(&history, &request).len(), count);
    }
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

fn is_unknown(ticks: &[Now], actor: Actor, tick: i64) -> bool {
    let now = &ticks[tick as usize];
    match actor {
        Actor::Thread(thread) => now.threads[thread as usize - 1].state == ThreadState::Unknown,
        Actor::Lwp(lwp) => now.lwps[lwp as usize - 100].state == LwpState::Unknown,
    }
}

/// The place of the innermost interrupt on a CPU at a tick.
fn innermost_at(history: &History, cpu: u32, tick: i64) -> Option<usize> {
    let open = |place: &usize| {
        let interrupt = &history.interrupts[*place];
        interrupt.cpu == cpu && interrupt.interval.contains(tick)
    };
    (0..history.interrupts.len()).filter(open).max_by_key(|place| history.interrupts[*place].depth)
}

/// The interrupts that an event is in, or ends.
fn around(history: &History, mark: &Mark) -> Vec<usize> {
    let cpu = mark.cpu.unwrap();
    let ended = innermost_at(history, cpu, mark.tick - 1);
    let ended = ended.filter(|place| {
        mark.context != Context::Task
            && mark.context != Context::Idle
            && history.interrupts[*place].interval.to == mark.tick
    });
    innermost_at(history, cpu, mark.tick).into_iter().chain(ended).collect()
}

/// The interrupts that are because of the one that an event is in: it, and softirqs after it.
fn because_of(ticks: &[Now], history: &History, mark: &Mark, limit: i64) -> Vec<(u32, Interval)> {
    let (cpu, tick) = (mark.cpu.unwrap(), mark.tick);
    let innermost = |tick: i64| innermost_at(history, cpu, tick);
    let Some(handler) = around(history, mark).first().copied() else { return Vec::new() };
    let mut set = vec![handler];
    let mut until = history.interrupts[handler].interval.to;
    for later in tick..limit.min(TICKS) {
        if had_cpu(ticks, cpu as usize, later) != had_cpu(ticks, cpu as usize, tick) {
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

/// The LWPs and threads that an event switches in, wakes or creates.
fn targets(mark: &Mark) -> Vec<Actor> {
    mark.target_lwp.map(Actor::Lwp).into_iter().chain(mark.target_thread.map(Actor::Thread)).collect()
}

/// The first TO event that a FROM event caused, and whether it is one of a member by its target.
fn caused(
    ticks: &[Now],
    history: &History,
    from: usize,
    limit: i64,
    is_used: &[bool],
) -> Option<(usize, bool)> {
    let mark = &history.marks[from];
    let is_interrupt = |context| matches!(context, Context::Irq | Context::Softirq);
    let mut members: BTreeSet<Actor> = targets(mark).into_iter().collect();
    let mut interrupts = Vec::new();
    if is_interrupt(mark.context) {
        interrupts = because_of(ticks, history, mark, limit);
    } else {
        members.extend(actor(mark.thread, mark.lwp));
    }
    for tick in mark.tick..limit.min(TICKS) {
        let leaves = |actor: &Actor| begins_to_wait(ticks, *actor, tick) || is_unknown(ticks, *actor, tick);
        let leaving: Vec<Actor> = members.iter().copied().filter(leaves).collect();
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
                    members.extend(woken.filter(|woken| !leaves(woken)));
                }
            }
            if members.len() == before {
                break;
            }
        }
        let is_member = |actor: &Actor| members.contains(actor) || leaving.contains(actor);
        let answers = |place: usize| {
            let mark = &history.marks[place];
            let in_handler = around(history, mark)
                .into_iter()
                .any(|around| interrupts.iter().any(|(place, _)| *place as usize == around));
            let is_same_cpu = mark.cpu == history.marks[from].cpu;
            let by_target = targets(mark).iter().any(is_member);
            let by_recorder = actor(mark.thread, mark.lwp).as_ref().is_some_and(is_member);
            let is_of_member = by_target || by_recorder || (in_handler && is_same_cpu);
            let is_free = mark.is_to && mark.tick == tick && !is_used[place];
            (is_free && is_of_member).then_some((place, by_target))
        };
        if let Some(found) = (from + 1..history.marks.len()).find_map(answers) {
            return Some(found);
        }
    }
    None
}

#[test]
fn pairs_are_those_of_growing_the_set_tick_by_tick() {
    let (mut counts, mut causes) = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..300 {
        let mut machine = Machine::new(seed);
        if seed % 4 == 3 {
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
        for (order, place) in from.iter().enumerate() {
            let same = |next: &&usize| history.marks[**next].key == history.marks[*place].key;
            let limit =
                from[order + 1..].iter().find(same).map_or(window.to + 1, |next| history.marks[*next].tick);
            if let Some((to, by_target)) = caused(&ticks, &history, *place, limit, &is_used) {
                is_used[to] = true;
                expected.insert(*place, (to, Some(by_target)));
            }
        }
        for place in &from {
            if !expected.contains_key(place)
                && let Some(to) =
                    (place + 1..history.marks.len()).find(|to| history.marks[*to].is_to && !is_used[*to])
            {
                is_used[to] = true;
                expected.insert(*place, (to, None));
            }
        }
        let unmatched = from.len() - expected.len();
        // Filters choose among these.
        let lwps = (seed % 5 == 1).then(|| [100, 102].into());
        let threads = (seed % 5 == 2).then(|| [1, 2, 5].into());
        let cpus = (seed % 7 == 1).then(|| [0].into());
        let request = Request { window, lwps, threads, cpus, ..Request::default() };
        expected.retain(|_, (to, by_target)| {
            let Mark { cpu, lwp, thread, target_lwp, target_thread, .. } = history.marks[*to];
            let (lwp, thread) =
                if *by_target == Some(true) { (target_lwp, target_thread) } else { (lwp, thread) };
            request.has_place(lwp, cpu)
                && request.threads.as_ref().is_none_or(|threads| thread.is_some_and(|t| threads.contains(&t)))
        });
        let pairs = reactivity_pairs(&history, &request).unwrap();
        let tick = |place: usize| history.marks[place].tick;
        let mut expected: Vec<(i64, i64, String)> = expected
            .iter()
            .map(|(from, (to, is_caused))| {
                (tick(*from), tick(*to), if is_caused.is_some() { "caused" } else { "next" }.to_string())
            })
            .collect();
        expected.sort();
        let mut found: Vec<_> =
            pairs.rows.to_vec().iter().map(|row| (int(&row[0]), int(&row[1]), text(&row[3]))).collect();
        found.sort();
        assert_eq!(found, expected, "seed {seed}");
        let mut total = 0;
        for row in &pairs.rows.to_vec() {
            *counts.entry(text(&row[3])).or_insert(0) += 1;
            assert_eq!(
                row[8..row.len() - 1].iter().map(int).sum::<i64>(),
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
        if pairs.rows.is_empty() && unmatched == 0 {
            continue;
        }
        assert_eq!(rows("cause").iter().map(|row| int(&row[4])).sum::<i64>(), total);
        assert_eq!(int(&rows("pairs")[0][3]), pairs.rows.len() as i64);
        assert_eq!(int(&rows("unmatched")[0][3]), unmatched as i64, "seed {seed}");
        for row in rows("cause") {
            *causes.entry(text(&row[1])).or_insert(0) += int(&row[4]);
        }
        // The longest are listed first.
        let worst = reactivity_pairs(&history, &Request { worst: 3, ..request }).unwrap();
        assert_eq!(worst.rows.to_vec(), pairs.rows.to_vec()[..pairs.rows.len().min(3)]);
        assert!(pairs.rows.to_vec().is_sorted_by_key(|row| -int(&row[2])));
    }
    assert!(counts["caused"] > 300 && counts["next"] > 300, "{counts:?}");
    assert!(causes.len() >= 9 && causes.values().filter(|ticks| **ticks > 300).count() >= 9, "{causes:?}");
}
