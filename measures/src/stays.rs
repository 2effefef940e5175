//! The states of user threads and LWPs, of either level alike, and what interrupts took of them.

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::{History, Interrupt, Interval, Level, Request, Searches, ThreadStay, groups::Owner};

/// A state of a user thread or of an LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Thread(ThreadState),
    Lwp(LwpState),
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Thread(state) => state.name(),
            State::Lwp(state) => state.name(),
        }
    }

    /// Whether it executes, or an interrupt does in its place.
    pub(crate) fn is_on_cpu(self) -> bool {
        matches!(self, State::Thread(ThreadState::Active) | State::Lwp(LwpState::Running))
    }

    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, State::Thread(ThreadState::Unknown) | State::Lwp(LwpState::Unknown))
    }
}

/// A state, and where that was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    pub(crate) state: State,
    /// The LWP, or that which the user thread was mounted on.
    pub(crate) lwp: Option<u32>,
    /// The CPU that the LWP was on, or in whose run queue. Of user threads only if they are active or stalled, or if the
    /// request is about CPUs.
    pub(crate) cpu: Option<u32>,
    pub(crate) waits_for: Option<WaitKind>,
    pub(crate) object: i64,
}

impl ThreadStay {
    /// The CPU that its LWP was on, or left.
    pub(crate) fn cpu(&self, history: &History, interval: Interval) -> Option<u32> {
        history.lwps.of(self.lwp?.into()).at(interval.from)?.1.cpu
    }
}

/// The user threads that are asked about, or the LWPs.
pub(crate) fn asked_owners(history: &History, request: &Request) -> Vec<Owner> {
    let names = &history.names;
    match request.level(history) {
        Level::Threads => {
            let threads = names.threads.keys().filter(|thread| request.has_thread(**thread));
            threads.map(|thread| Owner::Thread(*thread)).collect()
        }
        Level::Lwps => {
            let lwps = names.lwps.keys().filter(|lwp| **lwp != 0 && request.has_lwp(**lwp));
            lwps.map(|lwp| Owner::Lwp(*lwp)).collect()
        }
    }
}

/// Calls `each` with the states of a user thread or LWP in a window, cut to it: those at the places that are asked for, and
/// not that it has exited.
pub(crate) fn each_stay<'h>(
    searches: &mut Searches<'h>,
    owner: Owner,
    request: &Request,
    window: Interval,
    mut each: impl FnMut(&mut Searches<'h>, Interval, Stay),
) {
    let history = searches.history;
    match owner {
        Owner::Thread(thread) => {
            for (interval, stay) in history.threads.of(thread).within(window) {
                let needs_cpu = matches!(stay.state, ThreadState::Active | ThreadState::Stalled);
                let lwp = stay.lwp.filter(|_| needs_cpu || request.cpus.is_some());
                let of_lwp = lwp.and_then(|lwp| searches.lwps.of(lwp.into()).at(interval.from));
                let cpu = of_lwp.and_then(|(_, stay)| stay.cpu);
                if stay.state != ThreadState::Exited && request.has_place(stay.lwp, cpu) {
                    let (state, waits_for) = (State::Thread(stay.state), stay.waits_for);
                    each(
                        searches,
                        interval,
                        Stay { state, lwp: stay.lwp, cpu, waits_for, object: stay.object },
                    );
                }
            }
        }
        Owner::Lwp(lwp) => {
            for (interval, stay) in history.lwps.of(lwp.into()).within(window) {
                if stay.state != LwpState::Exited && request.has_place(Some(lwp), stay.cpu) {
                    let (state, lwp) = (State::Lwp(stay.state), Some(lwp));
                    each(searches, interval, Stay { state, lwp, cpu: stay.cpu, waits_for: None, object: 0 });
                }
            }
        }
    }
}

/// What interrupts took of one stretch on a CPU, interrupt by interrupt: each is counted once, also if others were inside
/// of it.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Those that are not over yet, by their places: as many as nest.
    open: Vec<(u32, i64)>,
}

impl Taken {
    /// Adds what interrupts took of a part of the stretch, which comes after those before it; the answer is how many ticks.
    /// Calls `each` with those that are over, and the ticks that they took.
    pub(crate) fn add<'h>(
        &mut self,
        searches: &mut Searches<'h>,
        cpu: Option<u32>,
        part: Interval,
        mut each: impl FnMut(&'h Interrupt, i64),
    ) -> i64 {
        let (Some(cpu), history) = (cpu, searches.history) else { return 0 };
        let mut sum = 0;
        for (piece, place) in searches.innermost.of(cpu.into()).within(part) {
            sum += piece.ticks();
            if let Some((_, ticks)) = self.open.iter_mut().rev().find(|(open, _)| open == place) {
                *ticks += piece.ticks();
                continue;
            }
            self.open.retain(|(place, ticks)| {
                let interrupt = &history.interrupts[*place as usize];
                let goes_on = interrupt.interval.to > piece.from;
                if !goes_on {
                    each(interrupt, *ticks);
                }
                goes_on
            });
            self.open.push((*place, piece.ticks()));
        }
        sum
    }

    /// Ends the stretch: calls `each` with those interrupts that it has not been called with.
    pub(crate) fn finish<'h>(&mut self, history: &'h History, mut each: impl FnMut(&'h Interrupt, i64)) {
        for (place, ticks) in self.open.drain(..) {
            each(&history.interrupts[place as usize], ticks);
        }
    }
}
