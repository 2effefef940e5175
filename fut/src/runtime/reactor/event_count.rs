//! Waits for the next event without missing one: rules 1 to 3 of `registered_fds`, for one direction.

#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};
use std::{mem, sync::PoisonError, task::Waker};

#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};

use super::waiter::Waiter;
use crate::model_check::atomic::{AtomicU64, Ordering};

/// Number of events, and the waiters for the next one.
#[derive(Debug)]
pub(super) struct EventCount<W> {
    /// Written under the lock of `waiters`.
    events: AtomicU64,
    waiters: Mutex<Waiting<W>>,
}

/// The waiters. Usually there is one, for which nothing is allocated.
#[derive(Debug)]
struct Waiting<W> {
    first: Option<W>,
    more: Vec<W>,
    /// The waker of the future that was polled last.
    task: Option<Waker>,
}

/// The result of [`EventCount::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Enter {
    /// The caller is one of the waiters now, and has to park.
    Entered,
    /// There was an event meanwhile: the caller has to retry its call.
    Missed,
}

impl<W> Default for EventCount<W> {
    fn default() -> EventCount<W> {
        EventCount {
            events: AtomicU64::new(0),
            waiters: Mutex::new(Waiting { first: None, more: Vec::new(), task: None }),
        }
    }
}

impl<W: PartialEq> EventCount<W> {
    /// The number of events. The caller reads it before it makes a call.
    pub(super) fn events(&self) -> u64 {
        // Acquire: pairs with the Release in `count`. The call that follows is made after this load, so it sees the
        // state that the event reports.
        self.events.load(Ordering::Acquire)
    }

    /// Adds `waiter`, whose call would have blocked, to the waiters. `seen` is the count before that call.
    pub(super) fn enter(&self, waiter: W, seen: u64) -> Enter {
        let mut waiters = self.waiters();
        if self.events.load(Ordering::Relaxed) != seen {
            return Enter::Missed;
        }
        match waiters.first {
            None => waiters.first = Some(waiter),
            Some(_) => waiters.more.push(waiter),
        }
        Enter::Entered
    }

    /// Adds the waker of a future, in place of the waker of the future polled before. Otherwise like
    /// [`enter`](EventCount::enter).
    #[cfg(any(feature = "compat", loom))]
    pub(super) fn enter_task(&self, waker: &Waker, seen: u64) -> Enter {
        // Wakers are code of the program: they are cloned and dropped while the lock is not held.
        let waker = waker.clone();
        let mut waiters = self.waiters();
        if self.events.load(Ordering::Relaxed) != seen {
            return Enter::Missed;
        }
        let before = waiters.task.replace(waker);
        drop(waiters);
        drop(before);
        Enter::Entered
    }

    /// Forgets the waker of a future.
    pub(super) fn leave_task(&self) {
        let task = self.waiters().task.take();
        drop(task);
    }

    /// Removes `waiter`, which entered when the count was `seen`. It is still there if there was no event since then.
    pub(super) fn leave(&self, waiter: &W, seen: u64) {
        if self.events.load(Ordering::Relaxed) != seen {
            // The event has taken all waiters.
            return;
        }
        let mut waiters = self.waiters();
        if waiters.first.as_ref() == Some(waiter) {
            waiters.first = None;
        }
        waiters.more.retain(|other| other != waiter);
    }

    /// Whether a thread waits.
    pub(super) fn has_waiters(&self) -> bool {
        let waiters = self.waiters();
        waiters.first.is_some() || !waiters.more.is_empty()
    }

    /// Counts an event, and calls `unpark` with each waiter, which may be the waker of a future.
    pub(super) fn count(&self, mut unpark: impl FnMut(Waiter<W>)) {
        let mut waiters = self.waiters();
        // Release: pairs with the Acquire in `events`.
        self.events.store(self.events.load(Ordering::Relaxed) + 1, Ordering::Release);
        let (first, more, task) = (waiters.first.take(), mem::take(&mut waiters.more), waiters.task.take());
        drop(waiters);
        first.into_iter().chain(more).map(Waiter::Thread).for_each(&mut unpark);
        if let Some(waker) = task {
            unpark(Waiter::Task(waker));
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Waiting<W>> {
        // No code of the program runs under this lock, so the state is consistent even if it is poisoned.
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

    /// A waiter, as for `unpark`.
    struct Caller(Thread);

    impl PartialEq for Caller {
        fn eq(&self, other: &Caller) -> bool {
            self.0.id() == other.0.id()
        }
    }

    /// Two callers wait for one message each; the two messages arrive with one event, or with one event each.
    fn every_caller_gets_a_message(events: &'static [usize]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let count = Arc::new(EventCount::<Caller>::default());
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
                            if count.enter(Caller(thread::current()), seen) == Enter::Entered {
                                thread::park();
                                count.leave(&Caller(thread::current()), seen);
                            }
                        }
                    })
                })
                .collect();
            for new in events {
                messages.fetch_add(*new, Ordering::Relaxed);
                count.count(|waiter| match waiter {
                    Waiter::Thread(waiter) => waiter.0.unpark(),
                    Waiter::Task(_) => unreachable!("no future waits"),
                });
            }
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }

    /// Wakes a thread of the model that polls a future.
    struct Signal(Thread);

    impl std::task::Wake for Signal {
        fn wake(self: std::sync::Arc<Signal>) {
            self.0.unpark();
        }
    }

    /// A thread and a future wait for one message each, on one descriptor; the future changes its waker at each poll.
    #[test]
    fn a_thread_and_a_future_get_a_message_each() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let count = Arc::new(EventCount::<Caller>::default());
            let messages = Arc::new(AtomicUsize::new(0));
            let take = |messages: &AtomicUsize| {
                messages.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
            };
            let task = thread::spawn({
                let (count, messages) = (count.clone(), messages.clone());
                move || {
                    loop {
                        let seen = count.events();
                        if take(&messages) {
                            return;
                        }
                        let waker = Waker::from(std::sync::Arc::new(Signal(thread::current())));
                        if count.enter_task(&waker, seen) == Enter::Entered {
                            thread::park();
                        }
                    }
                }
            });
            let caller = thread::spawn({
                let (count, messages) = (count.clone(), messages.clone());
                move || {
                    loop {
                        let seen = count.events();
                        if take(&messages) {
                            return;
                        }
                        if count.enter(Caller(thread::current()), seen) == Enter::Entered {
                            thread::park();
                            count.leave(&Caller(thread::current()), seen);
                        }
                    }
                }
            });
            for _ in 0..2 {
                messages.fetch_add(1, Ordering::Relaxed);
                count.count(|waiter| match waiter {
                    Waiter::Thread(thread) => thread.0.unpark(),
                    Waiter::Task(waker) => waker.wake(),
                });
            }
            task.join().unwrap();
            caller.join().unwrap();
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
