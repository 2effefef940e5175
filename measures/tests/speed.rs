//! How long each measure takes on many rows. By hand:
//! `cargo test --release -p sigmund-measures --test speed -- --ignored --nocapture`

use std::time::Instant;

use sigmund_measures::{
    ALL, By, Context, EventAt, History, HistoryBuilder, Interrupt, Interval, Life, LwpStay, Request, Span,
    ThreadStay, Wakeup,
};
use sigmund_model::{EndReason, LwpState, ThreadState};

/// Rows of LWP states; of user thread states as many, and half as many of the rest each.
const ROWS: i64 = 4_000_000;
const ACTORS: i64 = 64;

/// On each of eight CPUs eight LWPs take turns; each carries one of two user threads.
fn history() -> History {
    let mut builder = HistoryBuilder::default();
    let (name, kind) = {
        let words = &mut builder.history().words;
        (words.intern("request"), words.intern("irq"))
    };
    for row in 0..ROWS / 4 {
        // A turn of an LWP: 8 ticks on its CPU, 16 asleep, 40 runnable.
        let (actor, at) = (row % ACTORS, row / ACTORS * 64 + row % ACTORS / 8 * 8);
        let (lwp, cpu) = (100 + actor as u32, (actor % 8) as u32);
        let stays = [
            (0, 4, LwpState::Running, EndReason::Preempted),
            (4, 4, LwpState::Runnable, EndReason::Dispatched),
            (4, 8, LwpState::Running, EndReason::Slept),
            (8, 24, LwpState::Sleeping, EndReason::Woken),
        ];
        for (from, to, state, end) in stays {
            let stay = LwpStay { state, cpu: Some(cpu), end: Some(end) };
            builder.lwp_state(lwp, Interval::new(at + from, at + to), stay);
        }
        let stay = LwpStay { state: LwpState::Runnable, cpu: Some(cpu), end: Some(EndReason::Dispatched) };
        builder.lwp_state(lwp, Interval::new(at + 24, at + 64), stay);
        let thread = 1 + actor as u64;
        for (from, to, state, on, end) in [
            (0, 4, ThreadState::Active, Some(lwp), EndReason::Preempted),
            (4, 8, ThreadState::Active, Some(lwp), EndReason::Block),
            (8, 20, ThreadState::Blocked, None, EndReason::Woken),
            (20, 64, ThreadState::Ready, None, EndReason::Dispatched),
        ] {
            let stay = ThreadStay { state, lwp: on, waits_for: None, object: 0, end: Some(end) };
            builder.thread_state(thread, Interval::new(at + from, at + to), stay);
        }
        let wakeup = Wakeup {
            tick: at + 24,
            is_unpark: false,
            context: Context::Task,
            waker_lwp: Some(100),
            waker_thread: Some(1),
            lwp: Some(lwp),
            thread: None,
            cpu: Some(cpu),
            target_cpu: Some(cpu),
            latency: Some(40),
        };
        let unpark = Wakeup {
            tick: at + 20,
            is_unpark: true,
            lwp: None,
            thread: Some(thread),
            latency: Some(44),
            ..wakeup
        };
        builder.history().wakeups.extend([wakeup, unpark]);
        let interrupt = Interrupt {
            interval: Interval::new(at + 1, at + 3),
            cpu,
            kind,
            number: Some(7),
            name: Some(kind),
            lwp: Some(lwp),
            thread: Some(thread),
            depth: 0,
            end: EndReason::Returned,
        };
        let after = Interrupt { interval: Interval::new(at + 5, at + 6), ..interrupt };
        builder.history().interrupts.extend([interrupt, after]);
        let span = Span {
            interval: Interval::new(at, at + 70),
            thread: Some(thread),
            lwp: Some(lwp),
            is_function: false,
            name: Some(name),
            depth: 0,
            active: None,
            source: None,
            end: EndReason::Returned,
        };
        builder.history().spans.push(span);
        builder.history().events.extend(
            (0..10).map(|event| EventAt::new(at + event * 8 / 10, Some(lwp), Some(cpu), Some(thread))),
        );
    }
    let extent = Interval::new(0, ROWS / 4 / ACTORS * 64 + 64);
    let life = |name| Life { name: Some(name), pid: Some(70), interval: extent, created_by: None };
    let history = builder.history();
    history.extent = Some(extent);
    history.names.threads = (0..ACTORS as u64).map(|thread| (1 + thread, life("work/1".into()))).collect();
    history.names.lwps = (0..ACTORS as u32).map(|lwp| (100 + lwp, life("lwp/1".into()))).collect();
    builder.build()
}

#[test]
#[ignore = "takes memory and time; run it by hand, with --release"]
fn each_measure_is_fast() {
    let start = Instant::now();
    let history = history();
    println!(
        "{} LWP states, {} thread states, {} events, built in {:?}",
        history.lwps.len(),
        history.threads.len(),
        history.events.len(),
        start.elapsed()
    );
    let subject = Some("request".to_string());
    for measure in ALL {
        for (by, worst, subject) in [
            (By::Thread, 0, None),
            (By::Lwp, 0, None),
            (By::Pattern, 0, None),
            (By::Thread, 20, None),
            (By::Thread, 0, subject.clone()),
        ] {
            let request = Request { by: Some(by), worst, subject, ..Request::default() };
            let start = Instant::now();
            let answer = (measure.answer)(&history, &request);
            let rows = answer.map_or_else(|error| error, |answer| format!("{} rows", answer.rows.len()));
            println!(
                "{:12} {:8?} {:2} {:?}: {:?}, {rows}",
                measure.name,
                by,
                worst,
                request.subject,
                start.elapsed()
            );
        }
    }
}
