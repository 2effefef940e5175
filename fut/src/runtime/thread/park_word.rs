//! The word through which a user thread is parked and unparked.
//!
//! ```text
//!               unpark                      parked after the switch
//!   NOTIFIED ◀────────── RUNNABLE ─────────────────────────────▶ PARKED
//!       │ takes the token    ▲ ▲                                   │
//!       └────────────────────┘ └─────────────── unpark ────────────┘
//! ```
//!
//! 1. RUNNABLE does not distinguish a mounted thread from one in a ready queue. So yielding does not touch the word.
//! 2. A thread that blocks first leaves its LWP. That LWP, no longer on the thread's stack, then sets the word to
//!    PARKED. So a thread found PARKED may be run at once.
//! 3. The thread that changes PARKED to RUNNABLE makes the parked thread ready, and no other thread does.
//! 4. An unpark before the thread is parked leaves a token, NOTIFIED. Blocking takes the token and returns.
//! 5. To inspect a parked thread, another thread holds it: it changes PARKED to RUNNABLE, and later parks it again,
//!    like its LWP did. Until then the thread does not run, and what it waits for stays borrowed by its stack. An
//!    unpark in that time leaves a token, which the second parking finds; then rule 3 applies to the holder.

use crate::model_check::atomic::{AtomicU8, Ordering};

const RUNNABLE: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;

/// The state word.
#[derive(Debug)]
pub(super) struct ParkWord(AtomicU8);

/// The result of unparking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Unparked {
    /// The thread was parked: the caller has to make it ready (rule 3).
    MakeReady,
    /// The thread was not parked: it has a token now.
    TokenLeft,
}

/// The result of parking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::runtime) enum Parked {
    /// The thread waits to be unparked.
    Waiting,
    /// The thread was unparked meanwhile: the caller has to make it ready (rule 3).
    TokenTaken,
}

impl ParkWord {
    pub(super) fn new() -> ParkWord {
        ParkWord(AtomicU8::new(RUNNABLE))
    }

    /// Called for a new thread in the same block. Removes a token left for the previous thread.
    pub(super) fn reset(&self) {
        self.0.store(RUNNABLE, Ordering::Relaxed);
    }

    /// Takes the token. Called by the thread itself, before it leaves. Returns `false` if there is no token.
    pub(super) fn take_token(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`; makes the earlier writes of the unparking thread visible.
        self.0.load(Ordering::Relaxed) == NOTIFIED && self.0.swap(RUNNABLE, Ordering::Acquire) == NOTIFIED
    }

    /// Called by the LWP that the thread has left (rule 2), or by its holder (rule 5).
    pub(super) fn park(&self) -> Parked {
        // Release: pairs with the Acquire in `unpark`; publishes the thread's stack to the LWP that runs it next.
        // Acquire on failure: pairs with the Release in `unpark`, as in `take_token`.
        match self.0.compare_exchange(RUNNABLE, PARKED, Ordering::Release, Ordering::Acquire) {
            Ok(_) => Parked::Waiting,
            Err(_) => {
                // Only the thread's owner takes tokens, so the token is still there.
                self.0.swap(RUNNABLE, Ordering::Acquire);
                Parked::TokenTaken
            }
        }
    }

    /// Called by any thread (rule 5). Returns `false` if the thread was not parked.
    #[must_use]
    pub(super) fn hold(&self) -> bool {
        // Acquire: pairs with the Release in `park`; makes the thread's stack visible.
        self.0.compare_exchange(PARKED, RUNNABLE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Called by any thread.
    pub(super) fn unpark(&self) -> Unparked {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let (next, outcome) = match now {
                PARKED => (RUNNABLE, Unparked::MakeReady),
                _ => (NOTIFIED, Unparked::TokenLeft),
            };
            // Release, even if there already is a token: pairs with the Acquire of the thread that takes it. Acquire:
            // pairs with the Release in `park`.
            match self.0.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return outcome,
                Err(found) => now = found,
            }
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize},
        },
        thread,
    };

    use super::*;

    /// A thread waits for `flag`, on an LWP that parks it. Two other threads set the flag and unpark it.
    #[test]
    fn no_unpark_is_lost_and_none_makes_ready_twice() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let word = Arc::new(ParkWord::new());
            let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
            let made_ready = Arc::new(AtomicUsize::new(0));
            let unparkers: Vec<_> = (0..2)
                .map(|n| {
                    let (word, flags, made_ready) = (word.clone(), flags.clone(), made_ready.clone());
                    thread::spawn(move || {
                        flags[n].store(true, Ordering::Relaxed);
                        if word.unpark() == Unparked::MakeReady {
                            // Release: represents the Release of the ready queue.
                            made_ready.fetch_add(1, Ordering::Release);
                        }
                    })
                })
                .collect();
            let mut readied = 0;
            while !(flags[0].load(Ordering::Relaxed) && flags[1].load(Ordering::Relaxed)) {
                if word.take_token() || word.park() == Parked::TokenTaken {
                    continue;
                }
                // The thread is parked: it continues only when an unpark makes it ready.
                while made_ready.load(Ordering::Acquire) == readied {
                    thread::yield_now();
                }
                readied += 1;
            }
            unparkers.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(made_ready.load(Ordering::Relaxed), readied);
        });
    }
    /// One thread waits, one unparks it, and a third one inspects it meanwhile.
    #[test]
    fn a_thread_that_is_held_does_not_run_and_loses_no_unpark() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let word = Arc::new(ParkWord::new());
            let flag = Arc::new(AtomicBool::new(false));
            let made_ready = Arc::new(AtomicUsize::new(0));
            // Written only by the thread itself, and read by its holder.
            let stack = Arc::new(loom::cell::UnsafeCell::new(0));
            let unparker = {
                let (word, flag, made_ready) = (word.clone(), flag.clone(), made_ready.clone());
                thread::spawn(move || {
                    flag.store(true, Ordering::Relaxed);
                    if word.unpark() == Unparked::MakeReady {
                        made_ready.fetch_add(1, Ordering::Release);
                    }
                })
            };
            let holder = {
                let (word, made_ready, stack) = (word.clone(), made_ready.clone(), stack.clone());
                thread::spawn(move || {
                    if word.hold() {
                        // SAFETY: the thread is held; loom checks it.
                        stack.with(|stack| unsafe { stack.read() });
                        if word.park() == Parked::TokenTaken {
                            made_ready.fetch_add(1, Ordering::Release);
                        }
                    }
                })
            };
            let mut readied = 0;
            while !flag.load(Ordering::Relaxed) {
                // SAFETY: the thread runs, so it is not held; loom checks it.
                stack.with_mut(|stack| unsafe { *stack += 1 });
                if word.take_token() || word.park() == Parked::TokenTaken {
                    continue;
                }
                while made_ready.load(Ordering::Acquire) == readied {
                    thread::yield_now();
                }
                readied += 1;
            }
            unparker.join().unwrap();
            holder.join().unwrap();
            assert_eq!(made_ready.load(Ordering::Relaxed), readied);
        });
    }
}
