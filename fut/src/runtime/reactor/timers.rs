//! Timers, which unpark user threads.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::runtime::thread::ThreadRef;

#[derive(Default)]
pub(super) struct Timers(Mutex<State>);

#[derive(Default)]
struct State {
    /// Ordered by time, and by number for equal times.
    due: BTreeMap<Timer, ThreadRef>,
    next_number: u64,
}

/// A timer that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::runtime) struct Timer {
    at: Instant,
    number: u64,
}

impl Timers {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code of the program runs under this lock, so the state is consistent even if it is poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a timer; returns it, and whether it is due before all others.
    pub(super) fn add(&self, at: Instant, thread: ThreadRef) -> (Timer, bool) {
        let mut state = self.state();
        let timer = Timer { at, number: state.next_number };
        state.next_number += 1;
        state.due.insert(timer, thread);
        let is_first = state.due.first_key_value().is_some_and(|(first, _)| *first == timer);
        (timer, is_first)
    }

    pub(super) fn remove(&self, timer: Timer) {
        self.state().due.remove(&timer);
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.state().due.first_key_value().map(|(timer, _)| timer.at)
    }

    /// Unparks the threads of all timers that are due.
    pub(super) fn unpark_due(&self, now: Instant) {
        loop {
            let mut state = self.state();
            let Some(entry) = state.due.first_entry().filter(|entry| entry.key().at <= now) else { return };
            let thread = entry.remove();
            drop(state);
            thread.unpark();
        }
    }
}
