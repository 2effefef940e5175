//! `summary`: drawn by hand, and on random machines against counting every tick.

use std::collections::BTreeMap;

use crate::support::{
    CPUS, LWPS, THREADS, TICKS,
    damage::some_damaged,
    drawn::{Drawn, ask, cells, number_in, text_in},
    ends::lwp_end,
    number, tid,
};
use sigmund_measures::{By, Interval, Request};
use sigmund_model::{
    EndReason::{self, *},
    LwpState::{self, Running, Sleeping, Unknown},
    ThreadState,
};

const COLUMNS: [&str; 7] =
    ["what", "number", "total_tick", "percent", "switches", "migrations", "preemptions"];

// LWP 70    |CPU 0  |runnable|CPU 1      |unknown|CPU 1|sleeping   ->      LWP 71 on CPU 0 from 20, of another process
//           0       10       15          30      40    50        100
// thread 1  |active |stalled |active|ready|active         |unknown ...
//           0       10       15    20 22   (LWP 71)       60
fn drawn() -> sigmund_measures::History {
    use ThreadState::{Active, Ready, Stalled};
    let first = [
        (0, Running, 0, Preempted),
        (10, LwpState::Runnable, 0, Dispatched),
        (15, Running, 1, Lost),
        (30, Unknown, 1, Dispatched),
        (40, Running, 1, Slept),
        (50, Sleeping, 1, TraceEnd),
    ];
    let thread = [
        (0, Active, 70, Preempted),
        (10, Stalled, 70, Dispatched),
        (15, Active, 70, Yield),
        (20, Ready, 0, Dispatched),
        (22, Active, 71, Lost),
        (60, ThreadState::Unknown, 0, TraceEnd),
    ];
    let drawn = Drawn::default().lwp(70, 7, &first, 100).lwp(71, 8, &[(20, Running, 0, TraceEnd)], 100);
    drawn.thread(1, 7, &thread, 100).build()
}

#[test]
fn time_and_switches_of_threads_lwps_and_cpus() {
    let history = drawn();
    assert_eq!(
        cells(&ask("summary", &history, &Request::default()), &COLUMNS),
        [
            "thread 1 53 53.00 2 1 1",
            "lwp 71 80 80.00 1 0 0",
            "lwp 70 35 35.00 3 1 1",
            "cpu 0 90 90.00 2 0 1",
            "cpu 1 25 25.00 2 1 0",
        ]
    );
    // LWPs while they carried thread 1: 70 from 0 to 20, 71 from 22 to 60.
    let carrying = Request { threads: Some([1].into()), by: Some(By::Lwp), ..Request::default() };
    assert_eq!(
        cells(&ask("summary", &history, &carrying), &COLUMNS),
        ["lwp 71 38 38.00 0 0 0", "lwp 70 15 15.00 2 1 1", "cpu 0 48 48.00 1 0 1", "cpu 1 5 5.00 1 1 0",]
    );
    let window = Request { window: Interval::new(12, 22), ..Request::default() };
    assert_eq!(
        cells(&ask("summary", &history, &window), &COLUMNS),
        [
            "thread 1 5 50.00 0 0 0",
            "lwp 70 7 70.00 1 1 0",
            "lwp 71 2 20.00 1 0 0",
            "cpu 1 7 70.00 1 1 0",
            "cpu 0 2 20.00 1 0 0",
        ]
    );
    let first = Request { worst: 1, ..Request::default() };
    assert_eq!(cells(&ask("summary", &history, &first), &COLUMNS[..2]), ["thread 1", "lwp 71", "cpu 0"]);
    let on_one = Request { cpus: Some([1].into()), ..Request::default() };
    assert_eq!(
        cells(&ask("summary", &history, &on_one), &COLUMNS[..3]),
        ["thread 1 5", "lwp 70 25", "cpu 1 25"]
    );
    let by_process = Request { by: Some(By::Process), lwps: Some([71].into()), ..Request::default() };
    assert_eq!(
        cells(&ask("summary", &history, &by_process), &COLUMNS[..3]),
        ["thread 7 38", "lwp 8 80", "cpu 0 80"]
    );
}

// thread 1  |active 0-10|ready 10-10|active 10-20, on the same LWP
#[test]
fn a_dispatch_after_no_time_is_a_switch() {
    use ThreadState::{Active, Ready};
    let thread = [(0, Active, 70, Yield), (10, Ready, 0, Dispatched), (10, Active, 70, TraceEnd)];
    let history = Drawn::default().thread(1, 7, &thread, 20).build();
    assert_eq!(cells(&ask("summary", &history, &Request::default()), &COLUMNS), ["thread 1 20 100.00 2 0 0"]);
    assert_eq!(
        cells(&ask("latency", &history, &Request::default()), &["kind", "count", "total_tick"]),
        ["yield 1 0"]
    );
    let quanta = ask("quanta", &history, &Request::default());
    assert!(quanta.rows.is_empty() && quanta.notes[0].starts_with("1 quanta"), "{quanta:?}");
}

/// The first cell; unknown time sorts as none.
fn total(figures: &str) -> i64 {
    figures.split(' ').next().unwrap().parse().unwrap_or(0)
}

#[test]
fn a_summary_is_that_of_counting_every_tick() {
    for seed in 0..300 {
        let (ticks, history) = some_damaged(seed).history();
        let window = if seed % 2 == 0 { Interval::new(0, TICKS) } else { Interval::new(37, 311) };
        let mut sums: BTreeMap<(&str, i64), [i64; 4]> = BTreeMap::new();
        let mut add = |what, number, place: usize, count: bool| {
            sums.entry((what, number)).or_default()[place] += i64::from(count);
        };
        // Which threads were mounted, but maybe not on a CPU.
        let mut doubts = [false; THREADS];
        let mut last_cpu = [None; LWPS];
        let mut last_lwp = [None; THREADS];
        for tick in 0..TICKS {
            let now = &ticks[tick as usize];
            let before = tick.checked_sub(1).filter(|tick| *tick >= 0).map(|tick| &ticks[tick as usize]);
            let is_in = window.contains(tick);
            for (lwp, last_cpu) in last_cpu.iter_mut().enumerate() {
                let on =
                    |now: &crate::support::Now| (now.lwps[lwp].state == Running).then_some(now.lwps[lwp].cpu);
                let was_on = before.and_then(on);
                let left = was_on.filter(|_| on(now) != was_on);
                let preempted =
                    left.is_some() && matches!(lwp_end(&ticks, lwp, tick), Preempted | EndReason::Runnable);
                let who = i64::from(tid(lwp));
                add("lwp", who, 3, is_in && preempted);
                add("cpu", left.unwrap_or(0) as i64, 3, is_in && preempted);
                if let Some(thread) = before.and_then(|now| now.lwps[lwp].carries) {
                    let stays = now.lwps[lwp].carries == Some(thread);
                    add("thread", number(thread) as i64, 3, is_in && preempted && stays);
                }
                let Some(cpu) = on(now) else { continue };
                let comes = was_on != Some(cpu);
                let migrates = comes && last_cpu.is_some_and(|last| last != cpu);
                *last_cpu = Some(cpu);
                for (what, number) in [("lwp", who), ("cpu", cpu as i64)] {
                    add(what, number, 0, is_in);
                    add(what, number, 1, is_in && comes);
                    add(what, number, 2, is_in && migrates);
                }
            }
            for (thread, last_lwp) in last_lwp.iter_mut().enumerate() {
                let stay = now.threads[thread];
                let who = number(thread) as i64;
                add("thread", who, 0, is_in && stay.state == ThreadState::Active);
                doubts[thread] |= is_in && stay.state == ThreadState::Mounted;
                let Some(lwp) = stay.lwp else { continue };
                let comes = before.is_none_or(|before| before.threads[thread].lwp != Some(lwp));
                add("thread", who, 1, is_in && comes);
                let migrates = comes && last_lwp.is_some_and(|last| last != lwp);
                add("thread", who, 2, is_in && migrates);
                *last_lwp = Some(lwp);
            }
        }
        sums.retain(|_, sum| *sum != [0; 4]);
        let sums: BTreeMap<_, _> = sums
            .into_iter()
            .map(|((what, number), sum)| {
                // Of a thread that was never seen on a CPU, but may have been on one, time and preemptions are unknown.
                let is_known = what != "thread" || sum[0] > 0 || !doubts[number as usize - 1];
                let [total, switches, migrations, preemptions] = sum.map(|sum| sum.to_string());
                let null = |cell| if is_known { cell } else { "-".to_string() };
                let cells = [null(total), switches, migrations, null(preemptions)];
                ((what, number), cells.join(" "))
            })
            .collect();
        let request = Request { window, worst: 100, ..Request::default() };
        let answer = ask("summary", &history, &request);
        let figures = cells(&answer, &["total_tick", "switches", "migrations", "preemptions"]);
        let mut seen = BTreeMap::new();
        let mut order = Vec::new();
        for (row, figures) in answer.rows.to_vec().iter().zip(figures) {
            let what = ["thread", "lwp", "cpu"].into_iter().find(|w| *w == text_in(&answer, row, "what"));
            order.push((what, -total(&figures)));
            seen.insert((what.unwrap(), number_in(&answer, row, "number")), figures);
        }
        assert_eq!(seen, sums, "seed {seed}");
        assert!(order.chunk_by(|a, b| a.0 == b.0).all(|rows| rows.is_sorted()), "seed {seed}");
        // What LWPs had is what CPUs had.
        let of = |kind| seen.iter().filter(move |((what, _), _)| *what == kind).map(|(_, sum)| total(sum));
        assert_eq!(of("lwp").sum::<i64>(), of("cpu").sum::<i64>(), "seed {seed}");
        assert!(seen.keys().filter(|(what, _)| *what == "cpu").count() <= CPUS);
    }
}
