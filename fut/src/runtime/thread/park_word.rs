//! The word through which a user thread is parked and unparked.
//!
//! ```text
//!               unpark                      parked after the switch
//!   NOTIFIED ◀────────── RUNNABLE ─────────────────────────────▶ PARKED
//!       │ takes the token    ▲ ▲                                   │
//!       └────────────────────┘ └─────────────── unpark ────────────┘
//! ```
//!
//! 1. RUNNABLE says nothing about where the thread is: mounted, or in a ready queue. So yielding does not touch the
//!    word.
//! 2. A thread that wants to block first leaves its LWP. That LWP, off the thread's stack by then, makes the word
//!    PARKED. So whoever finds PARKED may run the thread at once.
//! 3. Whoever makes PARKED to RUNNABLE, and nothing else, makes the thread ready.
//! 4. An unpark before the thread has blocked leaves a token, NOTIFIED. Blocking takes the token and returns.
//! 5. Whoever wants to look at a parked thread holds it: makes PARKED to RUNNABLE, and parks it again afterwards, as its
//!    LWP did. Until then the thread does not run, and what it waits for stays borrowed by its stack. An unpark meanwhile
//!    leaves a token, which the second parking finds; then rule 3 is the holder's.

use crate::model_check::atomic::{AtomicU8, Ordering};

const RUNNABLE: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;

/// See above.
#[derive(Debug)]
pub(super) struct ParkWord(AtomicU8);

/// What unparking came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Unparked {
    /// It was parked: the caller makes it ready (rule 3).
    MakeReady,
    /// It was not: the token is there.
    TokenLeft,
}

/// What parking came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::runtime) enum Parked {
    /// It waits to be unparked.
    Waiting,
    /// It was unparked meanwhile, and is ready.
    TokenTaken,
}

impl ParkWord {
    pub(super) fn new() -> ParkWord {
        ParkWord(AtomicU8::new(RUNNABLE))
    }

    /// For a new thread in the same place: takes a token that was meant for the one before.
    pub(super) fn reset(&self) {
        self.0.store(RUNNABLE, Ordering::Relaxed);
    }

    /// By the thread itself, before it leaves: whether a token was there, and is taken.
    pub(super) fn take_token(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`; what the unparker did before is seen.
        self.0.load(Ordering::Relaxed) == NOTIFIED && self.0.swap(RUNNABLE, Ordering::Acquire) == NOTIFIED
    }

    /// By the LWP that the thread has left (rule 2), or by who holds it (rule 5).
    pub(super) fn park(&self) -> Parked {
        // Release: pairs with the Acquire in `unpark`; whoever runs the thread next sees what it stands on.
        // Acquire on failure: pairs with the Release in `unpark`, as in `take_token`.
        match self.0.compare_exchange(RUNNABLE, PARKED, Ordering::Release, Ordering::Acquire) {
            Ok(_) => Parked::Waiting,
            Err(_) => {
                // Only who has the thread takes tokens, so it is still there.
                self.0.swap(RUNNABLE, Ordering::Acquire);
                Parked::TokenTaken
            }
        }
    }

    /// By anybody (rule 5). `false`: it was not parked.
    #[must_use]
    pub(super) fn hold(&self) -> bool {
        // Acquire: pairs with the Release in `park`; what the thread stands on is seen.
        self.0.compare_exchange(PARKED, RUNNABLE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// By anybody.
    pub(super) fn unpark(&self) -> Unparked {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let (next, outcome) = match now {
                PARKED => (RUNNABLE, Unparked::MakeReady),
                _ => (NOTIFIED, Unparked::TokenLeft),
            };
            // Release, also where the token is there already: pairs with the Acquire of who takes it.
            // Acquire: pairs with the Release in `park`.
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

    /// A thread waits for `flag`, on an LWP that parks it; two others set the flag and unpark it.
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
                            // Release: stands for the ready queue.
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
                // Parked: only an unpark that makes it ready brings it back.
                while made_ready.load(Ordering::Acquire) == readied {
                    thread::yield_now();
                }
                readied += 1;
            }
            unparkers.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(made_ready.load(Ordering::Relaxed), readied);
        });
    }
    /// One waits, one unparks it, and a third looks at it meanwhile.
    #[test]
    fn a_thread_that_is_held_does_not_run_and_loses_no_unpark() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let word = Arc::new(ParkWord::new());
            let flag = Arc::new(AtomicBool::new(false));
            let made_ready = Arc::new(AtomicUsize::new(0));
            // What only the thread itself writes, and who holds it reads.
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
                // SAFETY: the thread runs, so nobody holds it; loom checks it.
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
