//! Histories drawn by hand.

use sigmund_measures::{
    Actor, Context, History, HistoryBuilder, Interrupt, Interval, Life, LwpStay, Span, Syscall, ThreadStay,
    Wakeup,
};
use sigmund_model::{EndReason, LwpState, ThreadState, WaitKind};

use LwpState::{Runnable, Running, Sleeping};
use ThreadState::{Active, Blocked, Ready, Stalled};

pub(crate) fn at(from: i64, to: i64) -> Interval {
    Interval { from, to }
}

#[derive(Default)]
pub(crate) struct Drawing(pub(crate) HistoryBuilder);

impl Drawing {
    /// A user thread of process 70: from, to, state, LWP.
    pub(crate) fn thread(&mut self, thread: u64, states: &[(i64, i64, ThreadState, u32)]) -> &mut Self {
        for (from, to, state, lwp) in states {
            let lwp = (*lwp != 0).then_some(*lwp);
            let is_blocked = *state == Blocked;
            let (waits_for, object) = if is_blocked { (Some(WaitKind::Mutex), 0x10) } else { (None, 0) };
            let stay = ThreadStay { state: *state, lwp, waits_for, object, end: None };
            self.0.thread_state(thread, at(*from, *to), stay);
        }
        let interval = at(states[0].0, 100);
        let life = Life { name: None, pid: Some(70), interval, created_by: None };
        self.0.history().names.threads.insert(thread, life);
        self
    }

    /// An LWP of process 70: from, to, state, CPU.
    pub(crate) fn lwp(&mut self, lwp: u32, states: &[(i64, i64, LwpState, u32)]) -> &mut Self {
        for (from, to, state, cpu) in states {
            self.0.lwp_state(lwp, at(*from, *to), LwpStay { state: *state, cpu: Some(*cpu), end: None });
        }
        let life = Life { name: None, pid: Some(70), interval: at(states[0].0, 100), created_by: None };
        self.0.history().names.lwps.insert(lwp, life);
        self
    }

    pub(crate) fn wakeup(
        &mut self,
        tick: i64,
        latency: i64,
        context: Context,
        waker: Actor,
        woken: Actor,
    ) -> &mut Self {
        let mut wakeup = Wakeup {
            tick,
            is_unpark: matches!(woken, Actor::Thread(_)),
            context,
            waker_lwp: None,
            waker_thread: None,
            lwp: None,
            thread: None,
            cpu: Some(0),
            target_cpu: None,
            latency: Some(latency),
        };
        match waker {
            Actor::Thread(thread) => wakeup.waker_thread = Some(thread),
            Actor::Lwp(lwp) => wakeup.waker_lwp = Some(lwp),
        }
        match woken {
            Actor::Thread(thread) => wakeup.thread = Some(thread),
            Actor::Lwp(lwp) => wakeup.lwp = Some(lwp),
        }
        self.0.history().wakeups.push(wakeup);
        self
    }

    pub(crate) fn interrupt(&mut self, from: i64, to: i64, cpu: u32, kind: &str) -> &mut Self {
        let kind = self.0.history().words.intern(kind);
        self.0.history().interrupts.push(Interrupt {
            interval: at(from, to),
            cpu,
            kind,
            number: Some(1),
            name: None,
            lwp: None,
            thread: None,
            depth: 0,
            end: EndReason::Returned,
        });
        self
    }

    pub(crate) fn call(&mut self, from: i64, to: i64, lwp: u32, name: &str) -> &mut Self {
        let name = self.0.history().words.intern(name);
        let (interval, end) = (at(from, to), EndReason::Returned);
        self.0.history().syscalls.push(Syscall {
            interval,
            lwp,
            thread: None,
            name,
            ret: None,
            off_cpu: None,
            end,
        });
        self
    }

    pub(crate) fn build(&mut self) -> History {
        self.0.history().extent = Some(at(0, 100));
        std::mem::take(&mut self.0).build()
    }
}

pub(crate) const X: Actor = Actor::Thread(1);
pub(crate) const Y: Actor = Actor::Thread(2);

// thread 1 |--active--|------- blocked ----------|--ready--|--active--|
//          0          10                         40        50         60
// thread 2 |ready|---- active, irq 12-15 ---|stalled|--- active ------|ready
//          0     5                          20      30                50
// LWP 100  |--running, CPU 0, thread 1--|---------- asleep -----------|
//          0                            10                            60
// LWP 101  |---- running, CPU 1, thread 2 --|in queue|---- running ---| then thread 1
//          0     5                          20       30               50          60
// LWP 900                                   | on 1   |
pub(crate) fn two_levels() -> History {
    let mut drawing = Drawing::default();
    drawing
        .thread(1, &[(0, 10, Active, 100), (10, 40, Blocked, 0), (40, 50, Ready, 0), (50, 60, Active, 101)])
        .thread(2, &[(0, 5, Ready, 0), (5, 20, Active, 101), (20, 30, Stalled, 101), (30, 50, Active, 101)])
        .lwp(100, &[(0, 10, Running, 0), (10, 60, Sleeping, 0)])
        .lwp(101, &[(0, 20, Running, 1), (20, 30, Runnable, 1), (30, 60, Running, 1)])
        .lwp(900, &[(20, 30, Running, 1)])
        .interrupt(12, 15, 1, "irq")
        .wakeup(40, 10, Context::Task, Y, X);
    drawing.build()
}

/// `two_levels`, in which thread 1 is in the span `request` then, and from 1 to 3.
pub(crate) fn one_span(from: i64, to: i64) -> History {
    let mut history = two_levels();
    let name = history.words.intern("request");
    for interval in [at(from, to), at(1, 3)] {
        history.spans.push(Span {
            interval,
            thread: Some(1),
            lwp: Some(100),
            is_function: false,
            name: Some(name),
            depth: 0,
            active: None,
            source: None,
            end: EndReason::Returned,
        });
    }
    history
}
