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
    /// When whoever waits for the next timer looks for it again; `None`: when it is told to.
    looked_for_at: Option<Instant>,
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

    /// Adds a timer; returns it, and whether it is due before those who wait look for timers again: then they have to be told.
    /// A program that sets a time limit for each wait, and then does not need it, tells them once in so long a time.
    pub(super) fn add(&self, at: Instant, waiter: Waiter) -> (Timer, bool) {
        let mut state = self.state();
        let timer = Timer { at, number: state.next_number };
        state.next_number += 1;
        state.due.insert(timer, waiter);
        self.len.store(state.due.len(), Ordering::Relaxed);
        let is_sooner = state.looked_for_at.is_none_or(|then| at < then);
        if is_sooner {
            state.looked_for_at = Some(at);
        }
        (timer, is_sooner)
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

    /// When the next one is due, for a caller who waits until then. Takes the lock in any case, which orders it with `add`.
    pub(super) fn next(&self) -> Option<Instant> {
        let mut state = self.state();
        state.looked_for_at = state.due.first_key_value().map(|(timer, _)| timer.at);
        state.looked_for_at
    }

    /// Removes the next timer that is due; the caller wakes what waits for it.
    pub(super) fn take_due(&self, now: Instant) -> Option<Waiter> {
        let mut state = self.state();
        let waiter = state.due.first_entry().filter(|entry| entry.key().at <= now)?.remove();
        self.len.store(state.due.len(), Ordering::Relaxed);
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Waker, time::Duration};

    use super::*;

    #[test]
    fn who_waits_is_told_of_timers_that_are_due_before_it_looks_again() {
        let (timers, now) = (Timers::default(), Instant::now());
        let at = |ms| now + Duration::from_millis(ms);
        let add = |ms| timers.add(at(ms), Waiter::Task(Waker::noop().clone()));
        assert_eq!(timers.next(), None);
        let (first, is_sooner) = add(10);
        assert!(is_sooner);
        assert!(!add(20).1 && !add(10).1, "it has been told to look, and looks again at 10");
        timers.remove(first);
        assert!(!add(15).1, "it looks at 10 nevertheless");
        assert_eq!(timers.next(), Some(at(10)));
        assert!(timers.take_due(at(10)).is_some() && timers.take_due(at(10)).is_none());
        assert_eq!(timers.next(), Some(at(15)));
        assert!(!add(16).1 && add(14).1 && !add(14).1 && add(13).1);
        assert!(timers.take_due(at(13)).is_some());
        assert_eq!(timers.next(), Some(at(14)));
    }
}
