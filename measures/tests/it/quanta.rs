//! `quanta`: drawn by hand, and on random machines against walking every tick.

use std::collections::BTreeMap;

use crate::support::{
    LWPS, Now, THREADS, TICKS,
    damage::some_damaged,
    drawn::{Drawn, ask, cells, number_in, text_in},
    ends::{lwp_end, thread_end},
    number, tid,
};
use sigmund_measures::{By, Interval, Request};
use sigmund_model::{
    EndReason::{self, *},
    LwpState, ThreadState,
};

// thread 1  |ready|active|stalled|active|ready|active|kernel|active |blocked|active|unknown|active|ready|mounted|active|exited
//           0     4      9       12     15    20     24     30      35      40     44      50     53    58      60     65
// on LWP           70     70      70           71     71     71              70             71            71      71
// ended by                preempted      yield                        block          lost (doubt)  quantum              exit
// thread 2  on 72 from the begin of the trace, to 10, then from 15 to the end
#[test]
fn a_quantum_is_from_dispatch_to_leaving_in_active_ticks() {
    use ThreadState::{Active, Blocked, Exited, InKernel, Mounted, Ready, Stalled, Unknown};
    let one = [
        (0, Ready, 0, Dispatched),
        (4, Active, 70, Preempted),
        (9, Stalled, 70, Dispatched),
        (12, Active, 70, Yield),
        (15, Ready, 0, Dispatched),
        (20, Active, 71, Slept),
        (24, InKernel, 71, Dispatched),
        (30, Active, 71, Block),
        (35, Blocked, 0, Dispatched),
        (40, Active, 70, Lost),
        (44, Unknown, 0, Dispatched),
        (50, Active, 71, Quantum),
        (53, Ready, 0, Dispatched),
        (58, Mounted, 71, Dispatched),
        (60, Active, 71, Exit),
        (65, Exited, 0, Exit),
    ];
    let two = [(0, Active, 72, Yield), (10, Ready, 0, Dispatched), (15, Active, 72, TraceEnd)];
    let history = Drawn::default().thread(1, 7, &one, 66).thread(2, 7, &two, 66).build();
    let answer = ask("quanta", &history, &Request::default());
    let columns = ["thread", "ended_by", "count", "total_tick", "wall_tick", "wall_mean_tick", "preemptions"];
    assert_eq!(
        cells(&answer, &columns),
        [
            "1 all 4 24 33 8 1",
            // 20 to 24 and 30 to 35.
            "1 block 1 9 15 15 0",
            "1 yield 1 8 11 11 1",
            "1 lost 1 4 4 4 0",
            "1 quantum 1 3 3 3 0",
        ]
    );
    // The last of thread 1, of which it is not known when it was active, and the first of thread 2.
    assert_eq!(answer.notes.len(), 1);
    assert!(answer.notes[0].starts_with("2 quanta"), "{}", answer.notes[0]);
    let window = Request { window: Interval::new(15, 44), ..Request::default() };
    let answer = ask("quanta", &history, &window);
    assert_eq!(cells(&answer, &columns[..3]), ["1 all 2", "1 block 1", "1 yield 1"]);
    let on_71 = Request { lwps: Some([71].into()), by: Some(By::Thread), ..Request::default() };
    assert_eq!(
        cells(&ask("quanta", &history, &on_71), &columns[..3]),
        ["1 all 2", "1 block 1", "1 quantum 1"]
    );
}

// LWP 70  |running|runnable|running|sleeping|running|unknown|running
// CPU      0                0       0        1       1       1
//         0       5        8      14       20      26      30    33
#[test]
fn a_quantum_of_an_lwp_is_from_switch_in_to_switch_out() {
    use LwpState::{Exited, Running, Sleeping, Unknown};
    let states = [
        (0, Running, 0, Preempted),
        (5, LwpState::Runnable, 0, Dispatched),
        (8, Running, 0, Slept),
        (14, Sleeping, 0, Dispatched),
        (20, Running, 1, Resync),
        (26, Unknown, 1, Dispatched),
        (30, Running, 1, Exit),
        (33, Exited, 1, Exit),
    ];
    let history = Drawn::default().lwp(70, 7, &states, 40).build();
    let answer = ask("quanta", &history, &Request::default());
    let columns = ["lwp", "ended_by", "count", "total_tick"];
    assert_eq!(cells(&answer, &columns), ["70 all 3 15", "70 lost 1 6", "70 slept 1 6", "70 exit 1 3"]);
    assert!(answer.notes[0].starts_with("1 quanta"), "{}", answer.notes[0]);
    let on_one = Request { cpus: Some([1].into()), ..Request::default() };
    assert_eq!(
        cells(&ask("quanta", &history, &on_one), &columns),
        ["70 all 2 9", "70 lost 1 6", "70 exit 1 3"]
    );
}

// LWP 70  |sleep|running|sleep|running|sleeping|running, no time|sleeping|
// CPU            0             1                0
//         0     2       5     8       12       14               14       20
#[test]
fn a_quantum_of_no_length_is_on_its_cpu() {
    use LwpState::{Running, Sleeping};
    let states = [
        (0, Sleeping, 0, Dispatched),
        (2, Running, 0, Slept),
        (5, Sleeping, 0, Dispatched),
        (8, Running, 1, Slept),
        (12, Sleeping, 1, Dispatched),
        (14, Running, 0, Slept),
        (14, Sleeping, 0, Dispatched),
    ];
    let history = Drawn::default().lwp(70, 7, &states, 20).build();
    let count = |cpus: Option<u32>| {
        let request = Request { cpus: cpus.map(|cpu| [cpu].into()), ..Request::default() };
        cells(&ask("quanta", &history, &request), &["ended_by", "count", "total_tick"])[0].clone()
    };
    assert_eq!([None, Some(0), Some(1)].map(count), ["all 3 7", "all 2 3", "all 1 4"]);
}

// LWP 70    |running                        |sleeping|running |
// thread 1      |active     |                          |active|
// thread 2                  |active |                              (not selected)
//           0   4           10      15      20       25 26    30
// LWP 71    |running of nobody                                |
#[test]
fn a_quantum_of_an_lwp_counts_while_it_carries_a_selected_thread() {
    use LwpState::{Running, Sleeping};
    let of_70 = [
        (0, Sleeping, 0, Dispatched),
        (2, Running, 0, Slept),
        (20, Sleeping, 0, Dispatched),
        (25, Running, 0, Slept),
        (30, Sleeping, 0, TraceEnd),
    ];
    let of_71 = [(0, Sleeping, 1, Dispatched), (1, Running, 1, Slept), (30, Sleeping, 1, TraceEnd)];
    let one = [
        (0, ThreadState::Ready, 0, Dispatched),
        (4, ThreadState::Active, 70, Yield),
        (10, ThreadState::Ready, 0, Dispatched),
        (26, ThreadState::Active, 70, Block),
        (30, ThreadState::Blocked, 0, TraceEnd),
    ];
    let two = [
        (0, ThreadState::Ready, 0, Dispatched),
        (10, ThreadState::Active, 70, Yield),
        (15, ThreadState::Ready, 0, TraceEnd),
    ];
    let drawn = Drawn::default().lwp(70, 7, &of_70, 40).lwp(71, 7, &of_71, 40);
    let history = drawn.thread(1, 7, &one, 40).thread(2, 7, &two, 40).build();
    let request = Request { threads: Some([1].into()), by: Some(By::Lwp), ..Request::default() };
    let columns = ["lwp", "ended_by", "count", "total_tick", "wall_tick"];
    assert_eq!(cells(&ask("quanta", &history, &request), &columns), ["70 all 2 10 10", "70 slept 2 10 10"]);
}

#[derive(Default)]
struct Quanta {
    /// Active and wall ticks of each.
    counted: BTreeMap<(i64, String), Vec<(i64, i64)>>,
    /// Their begin, or how long they were active, is not known.
    uncounted: usize,
}

impl Quanta {
    fn add(&mut self, who: i64, end: EndReason, active: Option<i64>, wall: i64) {
        let Some(active) = active else {
            self.uncounted += 1;
            return;
        };
        let end = if end == Dispatched { "lost" } else { end.name() };
        for end in [end, "all"] {
            self.counted.entry((who, end.into())).or_default().push((active, wall));
        }
    }
}

/// Each stay on an LWP.
fn threads(ticks: &[Now], window: Interval) -> Quanta {
    let mut quanta = Quanta::default();
    for thread in 0..THREADS {
        let lwp = |tick: i64| ticks[tick as usize].threads[thread].lwp;
        for from in (1..TICKS).filter(|tick| lwp(*tick).is_some() && lwp(*tick) != lwp(*tick - 1)) {
            let Some(to) = (from..TICKS).find(|tick| lwp(*tick) != lwp(from)) else { continue };
            let is = |state| move |tick: &i64| ticks[*tick as usize].threads[thread].state == state;
            let active = (from..to).filter(is(ThreadState::Active)).count() as i64;
            let is_known = !(from..to).any(|tick| is(ThreadState::Mounted)(&tick));
            if window.contains(to) {
                let (who, end) = (number(thread) as i64, thread_end(ticks, thread, to));
                quanta.add(who, end, is_known.then_some(active), to - from);
            }
        }
    }
    quanta
}

/// Of those LWPs that carry one of some threads, the ticks in which they do.
fn lwps(ticks: &[Now], window: Interval, carries: impl Fn(Option<usize>) -> bool) -> Quanta {
    let mut quanta = Quanta::default();
    for lwp in 0..LWPS {
        let cpu = |tick: i64| {
            let now = ticks[tick as usize].lwps[lwp];
            (now.state == LwpState::Running).then_some(now.cpu)
        };
        let begins = |tick: &i64| cpu(*tick).is_some() && (*tick == 0 || cpu(*tick) != cpu(*tick - 1));
        for from in (0..TICKS).filter(begins) {
            let Some(to) = (from..TICKS).find(|tick| cpu(*tick) != cpu(from)) else { continue };
            let carried = (from..to).filter(|tick| carries(ticks[*tick as usize].lwps[lwp].carries));
            let carried = carried.count() as i64;
            if window.contains(to) && carried > 0 {
                // Its switch in was seen, also if it was lost before that.
                let is_known = from > 0 && lwp_end(ticks, lwp, from) == Dispatched;
                let (who, end) = (tid(lwp).into(), lwp_end(ticks, lwp, to));
                quanta.add(who, end, is_known.then_some(carried), carried);
            }
        }
    }
    quanta
}

#[test]
fn quanta_are_those_of_walking_every_tick() {
    let mut uncounted = 0;
    for seed in 0..300 {
        let (ticks, history) = some_damaged(seed).history();
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let some = |thread: Option<usize>| matches!(thread, Some(0 | 3));
        let selected = || Some([number(0), number(3)].into());
        for (by, column, threads, expected) in [
            (By::Lwp, "lwp", None, lwps(&ticks, window, |_| true)),
            (By::Lwp, "lwp", selected(), lwps(&ticks, window, some)),
            (By::Thread, "thread", None, threads(&ticks, window)),
        ] {
            let request = Request { window, by: Some(by), threads, ..Request::default() };
            let answer = ask("quanta", &history, &request);
            let mut seen = BTreeMap::new();
            for row in &answer.rows.to_vec() {
                let key = (number_in(&answer, row, column), text_in(&answer, row, "ended_by"));
                let figures = ["count", "total_tick", "min_tick", "max_tick", "wall_tick"];
                seen.insert(key, figures.map(|figure| number_in(&answer, row, figure)));
            }
            let figures = |lengths: &Vec<(i64, i64)>| {
                let active = || lengths.iter().map(|(active, _)| *active);
                let wall = lengths.iter().map(|(_, wall)| wall).sum();
                [lengths.len() as i64, active().sum(), active().min().unwrap(), active().max().unwrap(), wall]
            };
            let figures: BTreeMap<_, _> =
                expected.counted.iter().map(|(key, lengths)| (key.clone(), figures(lengths))).collect();
            assert_eq!(seen, figures, "seed {seed} {by:?}");
            let number = |note: &String| note.split_once(" quanta").unwrap().0.parse().unwrap();
            let number: usize = answer.notes.first().map_or(0, number);
            assert_eq!(number, expected.uncounted, "seed {seed} {by:?}");
            uncounted += number;
            // What ended them sums to all.
            for row in answer.rows.to_vec().iter().filter(|row| text_in(&answer, row, "ended_by") == "all") {
                let who = number_in(&answer, row, column);
                for figure in ["count", "total_tick", "wall_tick", "preemptions"] {
                    let all = answer.rows.to_vec();
                    let parts = all.iter().filter(|part| {
                        number_in(&answer, part, column) == who && text_in(&answer, part, "ended_by") != "all"
                    });
                    let sum: i64 = parts.map(|part| number_in(&answer, part, figure)).sum();
                    assert_eq!(sum, number_in(&answer, row, figure), "seed {seed} {by:?} {figure}");
                }
            }
        }
    }
    assert!(uncounted > 500, "{uncounted}");
}
