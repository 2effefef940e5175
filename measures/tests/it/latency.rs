//! `latency`: drawn by hand, and on random machines against walking back from each dispatch, tick by tick.

use std::collections::BTreeMap;

use crate::support::{
    LWPS, LwpNow, Now, THREADS, TICKS,
    damage::{label, some_damaged},
    drawn::{Drawn, ask, cells, number_in, text_in},
    ends::{lwp_end, thread_end},
    number, tid,
};
use sigmund_measures::{By, Context, History, Interrupt, Interval, Request, Wakeup, who_had_lwps};
use sigmund_model::{
    EndReason::{self, *},
    LwpState::{Exited, Runnable, Running, Sleeping, Unknown},
    ThreadState,
};

const FIGURES: [&str; 6] = ["lwp", "kind", "count", "total_tick", "min_tick", "max_tick"];

fn wakeup(tick: i64, lwp: u32, latency: Option<i64>) -> Wakeup {
    Wakeup {
        tick,
        is_unpark: false,
        context: Context::Task,
        waker_lwp: Some(80),
        waker_thread: None,
        lwp: Some(lwp),
        thread: None,
        cpu: Some(1),
        target_cpu: Some(1),
        latency,
    }
}

// LWP 70  |run  |wait|run |wait |run|sleep |wait |run  |unknown|wait|run|wait ->
// CPU      0     0    0    0     1          1     1     1       1    1   1
//         0     10   14  20    27  30     40  45  50  55      60   63  70   80
// left by  preempted  yield    slept       woken: waking at 38    lost    runnable
// LWP 80 was on CPU 1 until 27 and from 30 to 43, LWP 90 from 43 to 45.
fn drawn() -> History {
    let states = [
        (0, Running, 0, Preempted),
        (10, Runnable, 0, Dispatched),
        (14, Running, 0, SchedYield),
        (20, Runnable, 0, Dispatched),
        (27, Running, 1, Slept),
        (30, Sleeping, 1, Woken),
        (40, Runnable, 1, Dispatched),
        (45, Running, 1, Lost),
        (50, Unknown, 1, Resync),
        (55, Runnable, 1, Dispatched),
        (60, Running, 1, EndReason::Runnable),
        (63, Runnable, 1, Dispatched),
        (70, Running, 1, Preempted),
        (75, Runnable, 1, TraceEnd),
    ];
    let others = [
        (0, Running, 1, Slept),
        (27, Sleeping, 1, Woken),
        (30, Running, 1, Slept),
        (43, Sleeping, 1, TraceEnd),
    ];
    let last = [(43, Running, 1, Exit), (45, Exited, 1, TraceEnd)];
    let mut drawn = Drawn::default().lwp(70, 7, &states, 80).lwp(80, 8, &others, 80).lwp(90, 9, &last, 80);
    // The second finds it awake.
    drawn.builder.history().wakeups = vec![wakeup(38, 70, Some(7)), wakeup(47, 70, None)];
    drawn.build()
}

#[test]
fn a_run_queue_latency_is_from_the_waking_or_the_leaving_to_the_switch_in() {
    let history = drawn();
    let request = Request { lwps: Some([70].into()), ..Request::default() };
    let answer = ask("latency", &history, &request);
    assert_eq!(
        cells(&answer, &FIGURES),
        ["70 wakeup 1 7 7 7", "70 voluntary 1 7 7 7", "70 unknown 1 7 7 7", "70 involuntary 1 4 4 4",]
    );
    // Runnable after events were missing: since when is not known. What still waits at the end of the trace is none yet.
    assert_eq!(answer.notes, ["1 waits are not counted: events are missing at their begin or end."]);
    // One counts whole if it ends in the window: that of 20 to 27 and of 63 to 70 do not.
    let window = Interval::new(28, 70);
    let answer = ask("latency", &history, &Request { window, ..request.clone() });
    assert_eq!(cells(&answer, &FIGURES), ["70 wakeup 1 7 7 7"]);
    let on_zero = Request { cpus: Some([0].into()), ..request };
    assert_eq!(cells(&ask("latency", &history, &on_zero), &FIGURES), ["70 involuntary 1 4 4 4"]);
}

#[test]
fn the_worst_have_a_waker_and_a_culprit() {
    let request = Request { lwps: Some([70].into()), worst: 3, ..Request::default() };
    let answer = ask("latency", &drawn(), &request);
    let columns = ["ts_tick", "latency_tick", "kind", "queue_cpu", "cpu", "waker", "culprit", "culprit_tick"];
    assert_eq!(
        cells(&answer, &columns),
        [
            // CPU 0 was empty, as far as is known.
            "20 7 voluntary 0 1 - idle 7",
            // 38 to 43 and 43 to 45.
            "38 7 wakeup 1 1 LWP 80(lwp/80) LWP 80(lwp/80) 5",
            "63 7 unknown 1 1 - idle 7",
        ]
    );
}

// thread 1  |new|on 70 |ready  |on 71   |blocked|ready|on 71 |blocked|unknown|ready|on 70
//           0   4      10     16       20      25    29    35      40      45    50     60
// left by            yield          block   unpark       block          lost
// thread 2  ready from 30 (unparked first seen), on 70 from 36 to 48, ready by its quantum, never on again
#[test]
fn a_ready_latency_is_from_unpark_yield_quantum_or_creation_to_the_dispatch() {
    use ThreadState::{Active, Blocked, New, Ready, Unknown};
    let one = [
        (0, New, 0, Dispatched),
        (4, Active, 70, Yield),
        (10, Ready, 0, Dispatched),
        (16, Active, 71, Block),
        (20, Blocked, 0, Woken),
        (25, Ready, 0, Dispatched),
        (29, Active, 71, Block),
        (35, Blocked, 0, Lost),
        (40, Unknown, 0, Resync),
        (45, Ready, 0, Dispatched),
        (50, Active, 70, TraceEnd),
    ];
    let two = [(30, Ready, 0, Dispatched), (36, Active, 70, Quantum), (48, Ready, 0, TraceEnd)];
    let awake = |lwp_to| [(0, Running, 0, TraceEnd), (lwp_to, Exited, 0, TraceEnd)];
    let drawn = Drawn::default().thread(1, 7, &one, 60).thread(2, 7, &two, 60);
    let mut drawn = drawn.lwp(70, 7, &awake(60), 60).lwp(71, 7, &[(0, Sleeping, 1, TraceEnd)], 60);
    let unpark = |tick, thread, latency| Wakeup {
        is_unpark: true,
        waker_thread: Some(1),
        lwp: None,
        thread: Some(thread),
        ..wakeup(tick, 0, Some(latency))
    };
    drawn.builder.history().wakeups = vec![unpark(25, 1, 4), unpark(30, 2, 6)];
    let history = drawn.build();
    let answer = ask("latency", &history, &Request::default());
    assert_eq!(
        cells(&answer, &["thread", "kind", "count", "total_tick"]),
        [
            "1 yield 1 6",
            "2 unpark 1 6",
            "2 wakeup-to-user 1 6",
            "1 unpark 1 4",
            "1 creation 1 4",
            "1 wakeup-to-user 1 4"
        ]
    );
    assert_eq!(answer.notes.len(), 1);
    let by_process = ask("latency", &history, &Request { by: Some(By::Process), ..Request::default() });
    assert_eq!(
        cells(&by_process, &["pid", "kind", "count", "total_tick"]),
        ["7 unpark 2 10", "7 wakeup-to-user 2 10", "7 yield 1 6", "7 creation 1 4"]
    );
    let worst = ask("latency", &history, &Request { worst: 2, ..Request::default() });
    assert_eq!(
        cells(
            &worst,
            &["thread", "kind", "ts_tick", "latency_tick", "lwp", "cpu", "waker", "culprit", "culprit_tick"]
        ),
        [
            "1 yield 10 6 71 1 - LWPs without a user thread, running 6",
            // LWP 71 carried 1 for 5 ticks, then nobody; LWP 70 nobody, from 30 to 36.
            "2 unpark 30 6 70 0 1(work/1) LWPs without a user thread, running 6",
        ]
    );
}

// LWP 70    |run, carries 1 |sleep     |wait|run      |sleep    |wait        ->lost
//           0               10         20   23        40        50           55
// LWP 71    |sleep                |wait|run, a poller: unparks 2 at 33 and, of its own, 3 at 36; runs 3 from 38
//           0                     30   32                                   52 sleep
// thread 2  |blocked               |ready by 71 at 33   |on 72 from 41, stalled at once |active from 46
// thread 3  |blocked                  |ready by 71 at 36|on 71 from 38 to 44 |blocked |ready by 71 at 47|on 70 from 49
#[test]
fn a_wakeup_to_user_latency_is_that_of_the_lwp_that_of_the_thread_or_both_in_turn() {
    use ThreadState::{Active, Blocked, InKernel, Ready, Stalled};
    let of_70 = [
        (0, Running, 0, Slept),
        (10, Sleeping, 0, Woken),
        (20, Runnable, 0, Dispatched),
        (23, Running, 0, Slept),
        (40, Sleeping, 0, Woken),
        (50, Runnable, 0, Lost),
        (55, Unknown, 0, TraceEnd),
    ];
    let of_71 = [
        (0, Sleeping, 1, Woken),
        (30, Runnable, 1, Dispatched),
        (32, Running, 1, Slept),
        (52, Sleeping, 1, TraceEnd),
    ];
    let one = [
        (0, Active, 70, Slept),
        (10, InKernel, 70, Woken),
        (20, Stalled, 70, Dispatched),
        (23, Active, 70, Slept),
        (40, InKernel, 70, Woken),
        (50, Stalled, 70, Lost),
        (55, ThreadState::Unknown, 70, TraceEnd),
    ];
    let two = [
        (0, Blocked, 0, Woken),
        (33, Ready, 0, Dispatched),
        (41, Stalled, 72, Dispatched),
        (46, Active, 72, TraceEnd),
    ];
    let three = [
        (0, Blocked, 0, Woken),
        (36, Ready, 0, Dispatched),
        (38, Active, 71, Block),
        (44, Blocked, 0, Woken),
        (47, Ready, 0, Dispatched),
        (49, Active, 70, TraceEnd),
    ];
    let drawn = Drawn::default().thread(1, 7, &one, 60).thread(2, 7, &two, 60).thread(3, 7, &three, 60);
    let mut drawn = drawn.lwp(70, 7, &of_70, 60).lwp(71, 7, &of_71, 60);
    let unpark = |tick, thread, latency| Wakeup {
        is_unpark: true,
        waker_lwp: Some(71),
        lwp: None,
        thread: Some(thread),
        ..wakeup(tick, 0, Some(latency))
    };
    drawn.builder.history().wakeups = vec![
        Wakeup { thread: Some(1), ..wakeup(18, 70, Some(5)) },
        wakeup(28, 71, Some(4)),
        unpark(33, 2, 8),
        unpark(36, 3, 2),
        unpark(47, 3, 2),
        Wakeup { thread: Some(1), ..wakeup(50, 70, None) },
    ];
    let answer = ask("latency", &drawn.build(), &Request::default());
    let rows = cells(&answer, &["thread", "kind", "count", "total_tick", "max_tick"]);
    let to_user: Vec<_> = rows.iter().filter(|row| row.contains("wakeup-to-user")).collect();
    assert_eq!(
        to_user,
        [
            // Its poller was woken at 28; it was dispatched at 41, on an LWP that did not run until 46.
            "2 wakeup-to-user 1 18 18",
            // 28 to 38; then 47 to 49: its poller had carried it meanwhile.
            "3 wakeup-to-user 2 12 10",
            // Woken at 18, its state changed at 20. When it ran after 50 is not known.
            "1 wakeup-to-user 1 5 5",
        ]
    );
    assert_eq!(answer.notes, ["1 waits are not counted: events are missing at their begin or end."]);
}

/// A wait that counts, and what is said of it if it is listed.
struct Waited {
    who: i64,
    kind: &'static str,
    from: i64,
    to: i64,
    /// The place of the LWP that ran then.
    lwp: usize,
    wakeup: Option<Wakeup>,
}

#[derive(Default)]
struct Waits {
    waits: Vec<Waited>,
    /// Begin or end are not known.
    uncounted: usize,
}

fn ending_at(wakeups: &[Wakeup], to: i64) -> impl Iterator<Item = &Wakeup> {
    wakeups.iter().filter(move |wakeup| wakeup.latency.is_some_and(|latency| wakeup.tick + latency == to))
}

/// Of each LWP the waits that ended in the window: from each tick at which it began to run back to the first tick of waiting.
fn lwps(
    ticks: &[Now],
    wakeups: &[Wakeup],
    window: Interval,
    carries: impl Fn(Option<usize>) -> bool,
) -> Waits {
    let mut waits = Waits::default();
    for lwp in 0..LWPS {
        let state = |tick: i64| ticks[tick as usize].lwps[lwp].state;
        let is_asked = |tick: i64| carries(ticks[tick as usize].lwps[lwp].carries);
        for to in (1..TICKS).filter(|to| window.contains(*to) && state(*to) != state(*to - 1)) {
            let begin = (0..to).rev().take_while(|tick| state(*tick) == Runnable).last();
            match (begin, state(to)) {
                (Some(begin), Unknown) => waits.uncounted += usize::from(is_asked(begin)),
                (_, Running) if is_asked(to - 1) => {
                    let wakeup = ending_at(wakeups, to).find(|wakeup| wakeup.lwp == Some(tid(lwp))).copied();
                    let kind =
                        begin.filter(|begin| *begin > 0).and_then(|begin| match lwp_end(ticks, lwp, begin) {
                            Woken => Some("wakeup"),
                            SchedYield => Some("voluntary"),
                            Preempted => Some("involuntary"),
                            EndReason::Runnable => Some("unknown"),
                            _ => None,
                        });
                    let who = tid(lwp).into();
                    // It may have gone to sleep and been woken within a tick.
                    if let Some(from) = wakeup.map(|wakeup| wakeup.tick) {
                        waits.waits.push(Waited { who, kind: "wakeup", from, to, lwp, wakeup });
                    } else if let (Some(kind), Some(from)) = (kind, begin) {
                        waits.waits.push(Waited { who, kind, from, to, lwp, wakeup });
                    } else {
                        let is_dispatch = begin.is_some() || lwp_end(ticks, lwp, to) == Dispatched;
                        waits.uncounted += usize::from(is_dispatch);
                    }
                }
                _ => {}
            }
        }
    }
    waits
}

/// The kind of the wait that a thread is ready from a tick on, and its unpark.
fn ready_since(
    ticks: &[Now],
    wakeups: &[Wakeup],
    thread: usize,
    (begin, to): (i64, i64),
) -> (Option<&'static str>, Option<Wakeup>) {
    let is_of = |wakeup: &&Wakeup| wakeup.is_unpark && wakeup.thread == Some(number(thread));
    let unpark = ending_at(wakeups, to).filter(is_of).find(|wakeup| wakeup.tick == begin).copied();
    let kind = match (begin > 0).then(|| thread_end(ticks, thread, begin)) {
        Some(Yield) => Some("yield"),
        Some(Quantum) => Some("quantum"),
        Some(Woken) => Some("unpark"),
        // Its state was not known before; maybe the unpark is.
        _ => unpark.map(|_| "unpark"),
    };
    (kind, unpark.filter(|_| kind == Some("unpark")))
}

fn threads(ticks: &[Now], wakeups: &[Wakeup], window: Interval) -> Waits {
    let mut waits = to_user(ticks, wakeups, window);
    for thread in 0..THREADS {
        let at = |tick: i64| ticks[tick as usize].threads[thread];
        let is_ready = |tick: i64| at(tick).state == ThreadState::Ready;
        for to in (1..TICKS).filter(|to| window.contains(*to) && !is_ready(*to) && is_ready(*to - 1)) {
            let from = (0..to).rev().take_while(|tick| is_ready(*tick)).last().unwrap();
            let (kind, wakeup) = ready_since(ticks, wakeups, thread, (from, to));
            match (kind, at(to).lwp) {
                (Some(kind), Some(lwp)) => {
                    let who = number(thread) as i64;
                    waits.waits.push(Waited { who, kind, from, to, lwp, wakeup });
                }
                _ => waits.uncounted += 1,
            }
        }
    }
    waits
}

/// Of each user thread the waits from its wakeup to the first tick at which it is active.
fn to_user(ticks: &[Now], wakeups: &[Wakeup], window: Interval) -> Waits {
    let mut waits = Waits::default();
    // The LWP's last wakeup in the kernel, if it has been awake and has carried nobody since it ran.
    let polled = |lwp: usize, unpark: i64| {
        for tick in (1..=unpark).rev() {
            if let Some(woken) = ending_at(wakeups, tick).find(|wakeup| wakeup.lwp == Some(tid(lwp))) {
                return Some(woken.tick);
            }
            let before = ticks[tick as usize - 1].lwps[lwp];
            if before.carries.is_some() || !matches!(before.state, Running | Runnable) {
                return None;
            }
        }
        None
    };
    for thread in 0..THREADS {
        use ThreadState::{Active, Mounted, Ready, Stalled};
        let at = |tick: i64| ticks[tick as usize].threads[thread];
        let state = |tick: i64| at(tick).state;
        let is_woken_at = |tick: i64| tick > 0 && thread_end(ticks, thread, tick) == Woken;
        for to in (1..TICKS).filter(|to| window.contains(*to) && state(*to) != state(*to - 1)) {
            let begin = (0..to).rev().take_while(|tick| state(*tick) == state(to - 1)).last().unwrap();
            let unparked = || {
                let (kind, unpark) = ready_since(ticks, wakeups, thread, (begin, to));
                (state(to - 1) == Ready && kind == Some("unpark")).then_some(unpark)
            };
            let from = match (state(to - 1), state(to)) {
                (Ready, Active) => {
                    let Some(unpark) = unparked() else { continue };
                    let poller = unpark.filter(|unpark| unpark.waker_thread.is_none());
                    let poller = poller.and_then(|unpark| unpark.waker_lwp);
                    poller.and_then(|lwp| polled(lwp as usize - tid(0) as usize, begin)).unwrap_or(begin)
                }
                (_, Active) => {
                    let is_of = |wakeup: &&Wakeup| {
                        let lwp = at(to).lwp.map(tid);
                        !wakeup.is_unpark && wakeup.lwp == lwp && wakeup.thread == Some(number(thread))
                    };
                    // The waking may have been lost, but not the wakeup.
                    let is_woken = state(to - 1) == Stalled && is_woken_at(begin);
                    let woken = ending_at(wakeups, to).find(is_of).map(|woken| woken.tick);
                    let Some(from) = woken.or(is_woken.then_some(begin)) else { continue };
                    from
                }
                // Since when it is active is not known. (If it is not known to have been on an LWP, its wait for one
                // is not counted, either.)
                (before, Mounted | ThreadState::Unknown) => {
                    let is_woken = before == Stalled && is_woken_at(begin);
                    let is_unparked = state(to) == Mounted && unparked().is_some();
                    waits.uncounted += usize::from(is_woken || is_unparked);
                    continue;
                }
                _ => continue,
            };
            let (who, kind, lwp) = (number(thread) as i64, "wakeup-to-user", at(to).lwp.unwrap());
            waits.waits.push(Waited { who, kind, from, to, lwp, wakeup: None });
        }
    }
    waits
}

/// What is said of a wait in a list: the CPU of the queue or the LWP, the CPU, the waker; and the ticks of each culprit.
fn listed(
    ticks: &[Now],
    history: &History,
    window: Interval,
    wait: &Waited,
    by: By,
) -> (String, BTreeMap<String, i64>) {
    let null = |cell: Option<String>| cell.unwrap_or("-".into());
    let waker = wait.wakeup.map(|wakeup| match (wakeup.context, wakeup.waker_thread, wakeup.waker_lwp) {
        (Context::Irq, ..) => {
            let is_open =
                |irq: &&Interrupt| Some(irq.cpu) == wakeup.cpu && irq.interval.contains(wakeup.tick);
            let innermost = history.interrupts.iter().filter(is_open).max_by_key(|irq| irq.depth);
            innermost.map_or("irq", |irq| history.words.text(irq.name.unwrap())).to_string()
        }
        (_, Some(thread), _) => format!("{thread}(work/{})", thread - 1),
        (_, _, Some(0)) => "idle".into(),
        (_, _, lwp) => format!("LWP {}(lwp/{})", lwp.unwrap(), lwp.unwrap() - tid(0)),
    });
    let now = ticks[wait.to as usize].lwps[wait.lwp];
    let queue = ticks[wait.to as usize - 1].lwps[wait.lwp].cpu;
    let place = if by == By::Lwp { queue as u32 } else { tid(wait.lwp) };
    let cpu = (now.state == Running).then(|| now.cpu.to_string());
    let carries = |lwp: &usize| {
        let inside = (0..TICKS).filter(|tick| window.contains(*tick));
        inside.into_iter().any(|tick| ticks[tick as usize].lwps[*lwp].carries.is_some())
    };
    let carriers: Vec<usize> = (0..LWPS).filter(carries).collect();
    let mut culprits = BTreeMap::new();
    for tick in wait.from..wait.to {
        if by == By::Lwp {
            *culprits.entry(label(ticks, queue, tick, true)).or_insert(0) += 1;
            continue;
        }
        for lwp in carriers.iter().map(|lwp| ticks[tick as usize].lwps[*lwp]) {
            *culprits.entry(carried_label(lwp)).or_insert(0) += 1;
        }
    }
    (format!("{place} {} {}", null(cpu), null(waker)), culprits)
}

fn carried_label(lwp: LwpNow) -> String {
    match lwp.carries {
        Some(thread) => format!("{}(work/{thread})", number(thread)),
        None => format!("LWPs without a user thread, {}", lwp.state.name()),
    }
}

#[test]
fn latencies_are_those_of_walking_back_from_each_dispatch() {
    let mut uncounted = 0;
    for seed in 0..300 {
        let (ticks, history) = some_damaged(seed).history();
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let some = |thread: Option<usize>| matches!(thread, Some(0 | 3));
        let selected = || Some([number(0), number(3)].into());
        for (by, column, threads, expected) in [
            (By::Lwp, "lwp", None, lwps(&ticks, &history.wakeups, window, |_| true)),
            (By::Lwp, "lwp", selected(), lwps(&ticks, &history.wakeups, window, some)),
            (By::Thread, "thread", None, threads(&ticks, &history.wakeups, window)),
        ] {
            let request = Request { window, by: Some(by), threads, ..Request::default() };
            let answer = ask("latency", &history, &request);
            let mut seen = BTreeMap::new();
            for row in &answer.rows.to_vec() {
                let key = (number_in(&answer, row, column), text_in(&answer, row, "kind"));
                let figures = ["count", "total_tick", "min_tick", "max_tick"];
                seen.insert(key, figures.map(|figure| number_in(&answer, row, figure)));
            }
            let mut lengths: BTreeMap<_, Vec<i64>> = BTreeMap::new();
            for wait in &expected.waits {
                lengths.entry((wait.who, wait.kind.to_string())).or_default().push(wait.to - wait.from);
            }
            let figures = |lengths: Vec<i64>| {
                let (count, total) = (lengths.len() as i64, lengths.iter().sum());
                [count, total, *lengths.iter().min().unwrap(), *lengths.iter().max().unwrap()]
            };
            let lengths: BTreeMap<_, _> =
                lengths.into_iter().map(|(key, lengths)| (key, figures(lengths))).collect();
            assert_eq!(seen, lengths, "seed {seed} {by:?}");
            let note = " waits are not counted: events are missing at their begin or end.";
            let notes: Vec<_> = answer.notes.iter().map(|text| text.strip_suffix(note).unwrap()).collect();
            let number = notes.first().map_or(0, |number| number.parse().unwrap());
            assert_eq!(number, expected.uncounted, "seed {seed} {by:?}");
            uncounted += number;
            // The worst are the same waits, the longest first.
            let worst = ask("latency", &history, &Request { worst: 7, ..request });
            let others = || expected.waits.iter().filter(|wait| wait.kind != "wakeup-to-user");
            let mut longest: Vec<i64> = others().map(|wait| wait.to - wait.from).collect();
            longest.sort_by_key(|length| -length);
            longest.truncate(7);
            let rows = worst.rows.to_vec();
            let listed_ticks: Vec<i64> =
                rows.iter().map(|row| number_in(&worst, row, "latency_tick")).collect();
            assert_eq!(listed_ticks, longest, "seed {seed} {by:?}");
            let place = if by == By::Lwp { "queue_cpu" } else { "lwp" };
            let places = cells(&worst, &[place, "cpu", "waker"]);
            for (row, place) in rows.iter().zip(places) {
                let (who, from) = (number_in(&worst, row, column), number_in(&worst, row, "ts_tick"));
                let kind = text_in(&worst, row, "kind");
                let is_it = |wait: &&Waited| (wait.who, wait.from, wait.kind) == (who, from, kind.as_str());
                let wait = others().find(is_it).expect("one that counts");
                assert_eq!(number_in(&worst, row, "latency_tick"), wait.to - wait.from);
                let (is_at, culprits) = listed(&ticks, &history, window, wait, by);
                assert_eq!(place, is_at, "seed {seed} {by:?} {from}");
                let (culprit, most) = (text_in(&worst, row, "culprit"), culprits.values().max());
                assert_eq!(culprits.get(&culprit), most, "seed {seed} {by:?} {from}: {culprit}");
                assert_eq!(Some(&number_in(&worst, row, "culprit_tick")), most, "seed {seed} {by:?} {from}");
            }
        }
    }
    assert!(uncounted > 1000, "{uncounted}");
}

#[test]
fn what_lwps_carried_sums_to_the_ticks_of_all_of_them() {
    let mut figures = BTreeMap::new();
    for seed in 0..200 {
        let (ticks, history) = some_damaged(seed).history();
        let window = Interval::new(seed as i64, 200 + seed as i64);
        let lwps: Vec<u32> = (0..LWPS).map(tid).collect();
        figures.clear();
        for now in (window.from..window.to).map(|tick| &ticks[tick as usize]) {
            for lwp in &now.lwps {
                *figures.entry(carried_label(*lwp)).or_insert(0) += 1;
            }
        }
        let shares = who_had_lwps(&history, By::Thread, &lwps, window);
        let shares: BTreeMap<_, _> =
            shares.iter().map(|(culprit, ticks)| (culprit.label(&history), *ticks)).collect();
        assert_eq!(shares, figures, "seed {seed}");
        assert_eq!(shares.values().sum::<i64>(), window.ticks() * LWPS as i64, "seed {seed}");
    }
}
