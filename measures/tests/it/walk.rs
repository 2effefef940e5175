//! The walk back: drawn by hand, and on random machines against walking tick by tick through snapshots.

use std::{collections::BTreeMap, sync::Arc};

use crate::support::{
    Machine, THREADS, TICKS,
    lives::change,
    number,
    sketch::{Drawing, X, Y, at, two_levels},
    slow_walk::{Slow, damage, each_tick, mix},
    tid,
};
use sigmund_measures::{
    Actor, Blame, By, Context, Creators, History, Link, Source, ThreadStay, What, walk_back,
};
use sigmund_model::{LwpState, ThreadState, WaitKind};

use LwpState::{Runnable, Running, Sleeping};
use ThreadState::{Active, Blocked, New, Ready};

fn pieces(history: &History, actor: Actor, from: i64, to: i64) -> Vec<(i64, i64, Actor, What)> {
    let pieces = walk_back(history, actor, at(from, to));
    pieces.iter().map(|piece| (piece.interval.from, piece.interval.to, piece.actor, piece.what)).collect()
}

const MUTEX: What = What::BlockedOn { kind: Some(WaitKind::Mutex), object: 0x10 };

#[test]
fn the_walk_follows_an_unpark_and_finds_the_stalled_holder() {
    use What::{Interrupt, Running, WaitingForCpu, WaitingForLwp};
    let history = two_levels();
    let expected = [
        (0, 5, Y, WaitingForLwp),
        (5, 12, Y, Running),
        (12, 15, Y, Interrupt(0)),
        (15, 20, Y, Running),
        (20, 30, Y, WaitingForCpu),
        (30, 40, Y, Running),
        (40, 50, X, WaitingForLwp),
        (50, 60, X, Running),
    ];
    assert_eq!(pieces(&history, X, 0, 60), expected);
    // The window cuts at both ends.
    let cut = [(22, 30, Y, WaitingForCpu), (30, 40, Y, Running), (40, 47, X, WaitingForLwp)];
    assert_eq!(pieces(&history, X, 22, 47), cut);
    // In the middle of the wait nobody has ended it.
    assert_eq!(pieces(&history, X, 5, 30), [(5, 10, X, Running), (10, 30, X, MUTEX)]);

    let walk = walk_back(&history, X, at(0, 60));
    let blames = |place: usize| walk[place].blames(&history, By::Thread);
    assert_eq!(blames(4), [(Blame::Who(Actor::Lwp(900)), 10)]);
    // LWP 100 slept, LWP 101 carried thread 2: each has half of it.
    assert_eq!(blames(6), [(Blame::Who(Y), 5), (Blame::LwpAsleep, 5)]);
    assert_eq!((walk[5].lwp, walk[5].cpu, walk[7].link), (Some(101), Some(1), None));
    let link = Link::Woke { woken: X, since: 10, wait: MUTEX };
    assert!(walk[..6].iter().all(|piece| piece.link == Some(link)));
}

// LWP 200 |--running--|---- asleep in read ----|w---|--runnable--|--running--|
//         0           10                       28   30           35          40
#[test]
fn an_interrupt_that_wakes_is_what_was_waited_for() {
    use What::{InSystemCall, WaitingFor, WaitingForCpu};
    let lwp = Actor::Lwp(200);
    let walk = |context, waker, kind: &str| {
        let mut drawing = Drawing::default();
        let states =
            [(0, 10, Running, 0), (10, 30, Sleeping, 0), (30, 35, Runnable, 0), (35, 40, Running, 0)];
        drawing.lwp(200, &states).lwp(300, &[(0, 40, Running, 1)]).call(9, 36, 200, "read");
        drawing.interrupt(27, 29, 0, kind).wakeup(28, 7, context, Actor::Lwp(waker), lwp);
        let history = drawing.build();
        let pieces = pieces(&history, lwp, 0, 40);
        assert_eq!(pieces[pieces.len() - 3..][0], (28, 30, lwp, WaitingForCpu));
        assert_eq!(pieces[pieces.len() - 2..][0], (30, 35, lwp, WaitingForCpu));
        assert_eq!(pieces[pieces.len() - 1], (35, 40, lwp, What::Running));
        (history.words.get("read"), pieces[..pieces.len() - 3].to_vec())
    };
    let before = (0, 10, lwp, What::Running);
    let by_softirq = walk(Context::Softirq, 200, "softirq").1;
    assert_eq!(by_softirq, [before, (10, 28, lwp, WaitingFor(Source::Interrupt(0)))]);
    // The entry of the timer's interrupt is not traced; what was open is a softirq.
    let by_timer = walk(Context::Irq, 200, "softirq").1;
    assert_eq!(by_timer, [before, (10, 28, lwp, WaitingFor(Source::Context(Context::Irq)))]);
    let (read, by_idle) = walk(Context::Idle, 0, "irq");
    assert_eq!(by_idle, [before, (10, 28, lwp, InSystemCall(read))]);
    let by_idle_task = walk(Context::Task, 0, "irq").1;
    assert_eq!(by_idle_task, by_idle);
    let by_other = walk(Context::Task, 300, "irq").1;
    assert_eq!(by_other, [(0, 28, Actor::Lwp(300), What::Running)]);
}

// thread 1 |--active--|- blocked -|-ready-|--active--|
//          0          10          30      35         40
// LWP 100  |----------------- running ---------------|    unparks it at 30, and carries no thread then; or thread 2 does
#[test]
fn a_runtime_that_notices_an_instant_or_a_descriptor_is_not_what_was_waited_for() {
    let lwp = Actor::Lwp(100);
    let blocked_for = |kind, object, waker| {
        let mut drawing = Drawing::default();
        let blocked = ThreadStay { state: Blocked, lwp: None, waits_for: Some(kind), object, end: None };
        drawing.thread(1, &[(0, 10, Active, 100)]).0.thread_state(1, at(10, 30), blocked);
        drawing.thread(1, &[(30, 35, Ready, 0), (35, 40, Active, 100)]).lwp(100, &[(0, 40, Running, 0)]);
        drawing.thread(2, &[(0, 40, Active, 101)]).lwp(101, &[(0, 40, Running, 1)]);
        drawing.wakeup(30, 5, Context::Task, waker, X);
        let mut pieces = pieces(&drawing.build(), X, 0, 40);
        assert_eq!(pieces.pop(), Some((35, 40, X, What::Running)));
        assert_eq!(pieces.pop(), Some((30, 35, X, What::WaitingForLwp)));
        pieces
    };
    for waker in [lwp, Y] {
        for kind in [WaitKind::Sleep, WaitKind::Io] {
            let what = What::BlockedOn { kind: Some(kind), object: 0 };
            assert_eq!(blocked_for(kind, 0, waker), [(0, 10, X, What::Running), (10, 30, X, what)]);
        }
        // It was to sleep until 25.
        let what = What::BlockedOn { kind: Some(WaitKind::Sleep), object: 25 };
        let late = (25, 30, X, What::WaitingForLwp);
        let before = [(0, 10, X, What::Running), (10, 25, X, what)];
        assert_eq!(blocked_for(WaitKind::Sleep, 25, waker), [before[0], before[1], late]);
        assert_eq!(blocked_for(WaitKind::Mutex, 0, waker), [(0, 30, waker, What::Running)]);
    }
}

// thread 1 |------------- active ---------------------|
//          0                  20                      60
// thread 2                    |new  |---- active -----|   created by thread 1
//                             20    30                60
#[test]
fn what_was_before_a_creation_is_the_creators() {
    let mut drawing = Drawing::default();
    drawing
        .thread(1, &[(0, 60, Active, 100)])
        .thread(2, &[(20, 30, New, 0), (30, 60, Active, 101)])
        .lwp(100, &[(0, 60, Running, 0)])
        .lwp(101, &[(0, 60, Running, 1)]);
    let mut history = drawing.build();
    let with_creator = |created_by, history: &mut History| {
        change(&mut history.names.threads, 2, |life| life.created_by = created_by);
        pieces(history, Y, 0, 60)
    };
    let of_two = [(20, 30, Y, What::WaitingForLwp), (30, 60, Y, What::Running)];
    let mut expected = vec![(0, 20, X, What::Running)];
    expected.extend(of_two);
    assert_eq!(with_creator(Some(1), &mut history), expected);
    for nobody in [None, Some(2)] {
        expected[0] = (0, 20, Y, What::Unknown);
        assert_eq!(with_creator(nobody, &mut history), expected);
    }
}

// LWP 100 |-- running on CPU 0 ----------------------|
//         0                  20                      60
// LWP 101                    |created|--- running ---|   created by LWP 100
// thread 2                           |new |- active -|   created by LWP 101
//                            20      25   30         60
#[test]
fn what_was_before_the_creation_of_an_lwp_or_by_one_is_the_creators() {
    let mut drawing = Drawing::default();
    drawing
        .thread(2, &[(25, 30, New, 0), (30, 60, Active, 101)])
        .lwp(100, &[(0, 60, Running, 0)])
        .lwp(101, &[(25, 60, Running, 1)]);
    let mut history = drawing.build();
    change(&mut history.names.lwps, 101, |life| life.interval.from = 20);
    let (thread, old, new) = (Y, Actor::Lwp(100), Actor::Lwp(101));
    history.names.creators = Some(Creators(Arc::new([(thread, new), (new, old)].into())));
    let expected = [
        (0, 20, old, What::Running),
        // It is not known what it did until its first state.
        (20, 25, new, What::Unknown),
        (25, 30, thread, What::WaitingForLwp),
        (30, 60, thread, What::Running),
    ];
    assert_eq!(pieces(&history, thread, 0, 60), expected);
    history.names.creators = None;
    assert_eq!(pieces(&history, thread, 0, 60)[0], (0, 25, thread, What::Unknown));
}

// thread 1 |--active--|- blocked -|--active--|
//          0          10          30         40       unparked at 10 and dispatched at once, before it waits
#[test]
fn a_wakeup_whose_dispatch_was_before_did_not_end_the_wait() {
    let mut drawing = Drawing::default();
    drawing
        .thread(1, &[(0, 10, Active, 100), (10, 30, Blocked, 0), (30, 40, Active, 100)])
        .thread(2, &[(0, 40, Active, 101)])
        .lwp(100, &[(0, 40, Running, 0)])
        .lwp(101, &[(0, 40, Running, 1)])
        .wakeup(10, 0, Context::Task, Y, X);
    let history = drawing.build();
    let expected = [(0, 10, X, What::Running), (10, 30, X, MUTEX), (30, 40, X, What::Running)];
    assert_eq!(pieces(&history, X, 0, 40), expected);
}

#[test]
fn threads_that_wake_each_other_at_one_tick_end_in_the_unknown() {
    let mut drawing = Drawing::default();
    for thread in [1, 2] {
        drawing.thread(thread, &[(0, 20, Blocked, 0), (20, 30, Ready, 0)]);
    }
    drawing.wakeup(20, 10, Context::Task, X, Y).wakeup(20, 10, Context::Task, Y, X);
    let history = drawing.build();
    let walk = pieces(&history, X, 0, 30);
    assert_eq!(walk.len(), 2);
    assert_eq!((walk[0].0, walk[0].1, walk[0].3), (0, 20, What::Unknown));
    assert_eq!(walk[1], (20, 30, X, What::WaitingForLwp));
}

#[test]
fn a_walk_is_that_of_walking_tick_by_tick() {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut jumps, mut creations) = (0, 0);
    for seed in 0..300 {
        let mut machine = Machine::new(seed);
        damage(&mut machine, seed);
        let interrupts = machine.interrupts.clone();
        let (ticks, mut history) = machine.history();
        let place =
            |interrupt| history.interrupts.iter().position(|other| other == interrupt).unwrap() as u32;
        let interrupts = interrupts.iter().map(place).collect();
        if seed % 2 == 0 {
            for place in 1..THREADS {
                change(&mut history.names.threads, number(place), |life| {
                    life.created_by = Some(number(place - 1));
                    life.interval.from = (mix(seed, 7000 + place as u64) % 200) as i64;
                });
            }
        }
        let slow = Slow { ticks: &ticks, history: &history, interrupts };
        for question in 0..40 {
            let (a, b) = (mix(seed, 8000 + question), mix(seed, 9000 + question));
            let from = (a % 300) as i64;
            let to = if question < 4 { TICKS } else { from + (b % (TICKS - from) as u64) as i64 };
            let actor = match a % 9 {
                thread @ 0..5 => Actor::Thread(number(thread as usize)),
                lwp => Actor::Lwp(tid(lwp as usize - 5)),
            };
            let pieces = walk_back(&history, actor, at(from, to));
            assert_eq!(pieces.iter().map(|piece| piece.interval.ticks()).sum::<i64>(), to - from);
            let mut end = from;
            for piece in &pieces {
                assert_eq!((piece.interval.from, piece.interval.ticks() > 0), (end, true), "no hole");
                end = piece.interval.to;
                *counts.entry(piece.what.name()).or_default() += 1;
                jumps += usize::from(matches!(piece.link, Some(Link::Woke { .. })));
                creations += usize::from(matches!(piece.link, Some(Link::Created(_))));
            }
            let (seen, expected) = (each_tick(&pieces), slow.walk(actor, from, to));
            for (place, tick) in (from..to).rev().enumerate() {
                let which = || format!("seed {seed}: {actor:?} {from}..{to}, at {tick}");
                // Where a walk is given up because it goes in circles, the time is nobody's.
                let are_unknown = [seen[place].3, expected[place].3] == [What::Unknown; 2];
                assert!(
                    are_unknown || seen[place] == expected[place],
                    "{}: {:?} {:?}",
                    which(),
                    seen[place],
                    expected[place]
                );
            }
            assert_eq!(seen.len(), expected.len());
            for piece in &pieces {
                slow.check_blames(piece);
            }
        }
    }
    // Every rule was needed.
    for what in
        ["running", "interrupt", "waiting for a CPU", "waiting for an LWP", "waiting for an interrupt"]
            .into_iter()
            .chain(["blocked", "in system call", "unknown"])
    {
        assert!(counts.get(what).is_some_and(|count| *count > 100), "{what}: {counts:?}");
    }
    assert!(jumps > 1000 && creations > 100, "{jumps} {creations}");
}
