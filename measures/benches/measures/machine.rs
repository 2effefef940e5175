//! A machine that is busy all the time: states, wakeups, interrupts, spans and events.

use sigmund_measures::{
    Context, EventAt, History, HistoryBuilder, Interrupt, Interval, Life, LwpStay, Span, ThreadStay, Wakeup,
};
use sigmund_model::{EndReason, LwpState, ThreadState};

const ACTORS: i64 = 64;

/// On each of eight CPUs eight LWPs take turns; each carries a user thread. As many events as rows, and half as many states of
/// LWPs; a turn of an LWP has ten events.
pub(super) fn history(rows: i64) -> History {
    let turns = rows / 10;
    let mut builder = HistoryBuilder::default();
    let (name, kind) = {
        let words = &mut builder.history().words;
        (words.intern("request"), words.intern("irq"))
    };
    for row in 0..turns {
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
    let extent = Interval::new(0, turns / ACTORS * 64 + 64);
    let life = |name| Life { name: Some(name), pid: Some(70), interval: extent, created_by: None };
    let history = builder.history();
    history.extent = Some(extent);
    history.names.threads = (0..ACTORS as u64).map(|thread| (1 + thread, life("work/1"))).collect();
    history.names.lwps = (0..ACTORS as u32).map(|lwp| (100 + lwp, life("lwp/1"))).collect();
    builder.build()
}
