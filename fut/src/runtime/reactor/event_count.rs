//! Waiting for the next event, without missing one: rules 1 to 3 of the reactor's sources, for one direction.

#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};
use std::{mem, sync::PoisonError};

#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};

use crate::model_check::atomic::{AtomicU64, Ordering};

/// Events so far, and who waits for the next one.
#[derive(Debug)]
pub(super) struct EventCount<W> {
    /// Written under the lock of `waiters`.
    events: AtomicU64,
    waiters: Mutex<Vec<W>>,
}

/// What came of the wish to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Enter {
    /// It is among the waiters, and parks.
    Entered,
    /// There was an event meanwhile: it tries its call again.
    Missed,
}

impl<W> Default for EventCount<W> {
    fn default() -> EventCount<W> {
        EventCount { events: AtomicU64::new(0), waiters: Mutex::new(Vec::new()) }
    }
}

impl<W: PartialEq> EventCount<W> {
    /// The count, before a call.
    pub(super) fn events(&self) -> u64 {
        // Acquire: pairs with the Release in `count`; the call that follows is not made before this is read, and
        // sees what the event is about.
        self.events.load(Ordering::Acquire)
    }

    /// `waiter`'s call would have blocked; `seen` is what was counted before it.
    pub(super) fn enter(&self, waiter: W, seen: u64) -> Enter {
        let mut waiters = self.waiters();
        if self.events.load(Ordering::Relaxed) != seen {
            return Enter::Missed;
        }
        waiters.push(waiter);
        Enter::Entered
    }

    /// Woken otherwise than by an event, `waiter` is there still.
    pub(super) fn leave(&self, waiter: &W) {
        self.waiters().retain(|other| other != waiter);
    }

    /// Counts an event. The caller unparks who has waited.
    #[must_use]
    pub(super) fn count(&self) -> Vec<W> {
        let mut waiters = self.waiters();
        // Release: pairs with the Acquire in `events`.
        self.events.store(self.events.load(Ordering::Relaxed) + 1, Ordering::Release);
        mem::take(&mut *waiters)
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<W>> {
        // No code of users runs under this lock, so a poisoned one is whole.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::{
        sync::{Arc, atomic::AtomicUsize},
        thread::{self, Thread},
    };

    use super::*;

    /// A waiter, as `unpark` finds it.
    struct Waiter(Thread);

    impl PartialEq for Waiter {
        fn eq(&self, other: &Waiter) -> bool {
            self.0.id() == other.0.id()
        }
    }

    /// Two callers want a message each; two messages come with one event, or with one each.
    fn every_caller_gets_a_message(events: &'static [usize]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let count = Arc::new(EventCount::<Waiter>::default());
            let messages = Arc::new(AtomicUsize::new(0));
            let callers: Vec<_> = (0..2)
                .map(|_| {
                    let (count, messages) = (count.clone(), messages.clone());
                    thread::spawn(move || {
                        loop {
                            let seen = count.events();
                            let call = messages
                                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                            if call.is_ok() {
                                return;
                            }
                            if count.enter(Waiter(thread::current()), seen) == Enter::Entered {
                                thread::park();
                                count.leave(&Waiter(thread::current()));
                            }
                        }
                    })
                })
                .collect();
            for new in events {
                messages.fetch_add(*new, Ordering::Relaxed);
                for waiter in count.count() {
                    waiter.0.unpark();
                }
            }
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }

    #[test]
    fn two_messages_with_one_event_reach_two_callers() {
        every_caller_gets_a_message(&[2]);
    }

    #[test]
    fn two_messages_with_an_event_each_reach_two_callers() {
        every_caller_gets_a_message(&[1, 1]);
    }
}
