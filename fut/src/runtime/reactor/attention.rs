//! Whether the reactor ticks: rule 5 of `reactor/mod.rs`.

use crate::model_check::atomic::{AtomicBool, Ordering, fence};

#[derive(Debug)]
pub(super) struct Attention {
    /// A set of a worker has been used.
    is_used: AtomicBool,
    ticks: AtomicBool,
}

impl Default for Attention {
    fn default() -> Attention {
        Attention { is_used: AtomicBool::new(false), ticks: AtomicBool::new(false) }
    }
}

impl Attention {
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Called before a set of a worker is used. Returns whether the reactor has to be rung.
    #[inline]
    pub(super) fn first_use(&self) -> bool {
        if self.is_used() || self.is_used.swap(true, Ordering::Relaxed) {
            return false;
        }
        // Pairs with the fence in `wants_tick`. If the worker there does not see this use, then the reactor sees that
        // the worker does not rest, because the reactor sees the tick that begins here.
        fence(Ordering::SeqCst);
        self.begin()
    }

    /// Called by a worker after it has stored that it does not rest. Returns whether the reactor has to be rung.
    #[inline]
    pub(super) fn wants_tick(&self) -> bool {
        // Pairs with the fences in `first_use` and `stop`.
        fence(Ordering::SeqCst);
        self.is_used() && !self.ticks.load(Ordering::Relaxed) && self.begin()
    }

    fn begin(&self) -> bool {
        // Release: pairs with the Acquire in `is_ticking`.
        !self.ticks.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_ticking(&self) -> bool {
        self.ticks.load(Ordering::Acquire)
    }

    /// Called by the reactor when it has seen that all workers rest. Returns `false` if one has stopped resting
    /// meanwhile; then the reactor continues to tick.
    #[must_use]
    pub(super) fn stop(&self, all_rest: impl Fn() -> bool) -> bool {
        self.ticks.store(false, Ordering::Relaxed);
        // Pairs with the fence in `wants_tick`: the worker there sees that the reactor has stopped, or the worker is
        // seen here.
        fence(Ordering::SeqCst);
        if all_rest() {
            return true;
        }
        self.ticks.store(true, Ordering::Relaxed);
        false
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::{
        sync::{Arc, atomic::AtomicUsize},
        thread,
    };

    use super::*;

    /// Two workers rest and work, and one of them uses a set for the first time. When both work and no longer rest, the
    /// reactor ticks, or has been rung.
    #[test]
    fn while_a_worker_works_the_reactor_ticks_or_is_rung() {
        loom::model(|| {
            let attention = Arc::new(Attention::default());
            let rests = Arc::new([AtomicBool::new(true), AtomicBool::new(true)]);
            let rings = Arc::new(AtomicUsize::new(0));
            let workers: Vec<_> = (0..2)
                .map(|worker| {
                    let (attention, rests, rings) = (attention.clone(), rests.clone(), rings.clone());
                    thread::spawn(move || {
                        rests[worker].store(false, Ordering::Relaxed);
                        if attention.wants_tick() {
                            rings.fetch_add(1, Ordering::Relaxed);
                        }
                        if worker == 0 {
                            if attention.first_use() {
                                rings.fetch_add(1, Ordering::Relaxed);
                            }
                            // This worker rests again: only the other one needs the reactor.
                            rests[worker].store(true, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            // The reactor, whether it was rung or not.
            let all_rest = || rests.iter().all(|rests| rests.load(Ordering::Relaxed));
            if attention.is_ticking() && all_rest() {
                let _ = attention.stop(all_rest);
            }
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert!(attention.is_ticking(), "worker 1 works, and nobody serves its set");
        });
    }
}
