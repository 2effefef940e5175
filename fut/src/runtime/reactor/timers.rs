//! Timers, which unpark user threads and wake futures.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use super::waiter::Waiter;

#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Number of timers; read without the lock.
    len: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Ordered by time, and by number for equal times.
    due: BTreeMap<Timer, Waiter>,
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a timer; returns it, and whether it is due before all others.
    pub(super) fn add(&self, at: Instant, waiter: Waiter) -> (Timer, bool) {
        let mut state = self.state();
        let timer = Timer { at, number: state.next_number };
        state.next_number += 1;
        state.due.insert(timer, waiter);
        self.len.store(state.due.len(), Ordering::Relaxed);
        let is_first = state.due.first_key_value().is_some_and(|(first, _)| *first == timer);
        (timer, is_first)
    }

    pub(super) fn remove(&self, timer: Timer) {
        let mut state = self.state();
        let removed = state.due.remove(&timer);
        self.len.store(state.due.len(), Ordering::Relaxed);
        drop(state);
        // Wakers are code of the program.
        drop(removed);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// When the next one is due. Takes the lock in any case, which orders it with `add`.
    pub(super) fn next(&self) -> Option<Instant> {
        self.state().due.first_key_value().map(|(timer, _)| timer.at)
    }

    /// Removes the next timer that is due; the caller wakes what waits for it.
    pub(super) fn take_due(&self, now: Instant) -> Option<Waiter> {
        let mut state = self.state();
        let waiter = state.due.first_entry().filter(|entry| entry.key().at <= now)?.remove();
        self.len.store(state.due.len(), Ordering::Relaxed);
        Some(waiter)
    }
}
