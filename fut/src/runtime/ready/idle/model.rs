//! Models of the rules of [`super`].

use std::time::Duration;

use loom::sync::Arc;

use super::*;

/// A set in which nothing ever becomes ready, or an event does: the number of events, and whether the bell was rung.
#[derive(Debug)]
struct Set {
    has_poller: AtomicBool,
    state: Mutex<(usize, bool)>,
}

impl Set {
    fn new() -> std::sync::Arc<Set> {
        let has_poller = AtomicBool::new(false);
        std::sync::Arc::new(Set { has_poller, state: Mutex::new((0, false)) })
    }

    /// Two LWPs that share it.
    fn bells(self: &std::sync::Arc<Set>) -> Vec<std::sync::Arc<dyn Bell>> {
        vec![self.clone(), self.clone()]
    }

    fn event(&self) {
        self.state.lock().unwrap().0 += 1;
    }
}

impl Set {
    /// Rule 4 of `reactor/mod.rs`: polls without waiting.
    fn poll_at_once(&self) -> usize {
        let (events, is_rung) = std::mem::take(&mut *self.state.lock().unwrap());
        if is_rung && self.has_poller.load(Ordering::Relaxed) {
            self.ring();
        }
        events
    }
}

impl Bell for Set {
    fn ring(&self) {
        self.state.lock().unwrap().1 = true;
    }
}

/// As an LWP sees it: `ready` counts the threads that it has made ready.
struct Polling<'a>(&'a Set, &'a AtomicUsize);

impl Poll for Polling<'_> {
    fn begin(&self) -> bool {
        !self.0.has_poller.swap(true, Ordering::AcqRel)
    }

    fn end(&self) {
        self.0.has_poller.swap(false, Ordering::AcqRel);
    }

    fn poll(&self, _limit: Option<Duration>, mut before: impl FnMut()) {
        let events = loop {
            let (events, is_rung) = std::mem::take(&mut *self.0.state.lock().unwrap());
            if events > 0 || is_rung {
                break events;
            }
            loom::thread::yield_now();
        };
        if events > 0 {
            before();
            self.1.fetch_add(events, Ordering::Relaxed);
        }
    }
}

/// Two LWPs share a set; an event makes a thread of its poller ready, and another thread comes from outside. Both
/// are done, whichever of them an LWP is woken for.
#[test]
fn a_poller_is_rung_for_work_and_keeps_what_it_has_polled() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let set = Set::new();
        let idle = Arc::new(Idle::new(set.bells(), Fences::Symmetric));
        let work = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicUsize::new(0));
        let lwps: Vec<_> = (0..2)
            .map(|lwp| {
                let (idle, work, done, set) = (idle.clone(), work.clone(), done.clone(), set.clone());
                loom::thread::spawn(move || {
                    // In place of the queue of its own, into which it polls.
                    let own = AtomicUsize::new(0);
                    let one_is_done = || {
                        if done.fetch_add(1, Ordering::Relaxed) == 1 {
                            idle.wake_all();
                        }
                    };
                    let take = |work: &AtomicUsize| {
                        work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
                    };
                    idle.begin_search();
                    loop {
                        if take(&own) || take(&work) {
                            idle.found();
                            one_is_done();
                            idle.begin_search();
                        }
                        if done.load(Ordering::Relaxed) == 2 {
                            return;
                        }
                        let is_work =
                            || work.load(Ordering::Relaxed) > 0 || done.load(Ordering::Relaxed) == 2;
                        if idle.sleep(lwp, is_work, None, &Polling(&set, &own)) == Woke::Polled {
                            assert!(take(&own), "nobody else takes it");
                            one_is_done();
                            idle.begin_search();
                        }
                    }
                })
            })
            .collect();
        work.fetch_add(1, Ordering::Relaxed);
        idle.wake_one();
        // As the reactor, which makes ready what it finds.
        work.fetch_add(set.poll_at_once(), Ordering::Relaxed);
        idle.wake_one();
        set.event();
        lwps.into_iter().for_each(|lwp| lwp.join().unwrap());
    });
}

/// Two LWPs take work out of a queue and sleep when there is none; two pieces of work arrive.
#[test]
fn no_work_is_left_while_all_lwps_sleep() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let set = Set::new();
        let idle = Arc::new(Idle::new(set.bells(), Fences::Symmetric));
        // In place of the queues: the amount of work available, and the amount done.
        let work = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicUsize::new(0));
        let lwps: Vec<_> = (0..2)
            .map(|lwp| {
                let (idle, work, done, set) = (idle.clone(), work.clone(), done.clone(), set.clone());
                loom::thread::spawn(move || {
                    idle.begin_search();
                    loop {
                        let taken =
                            work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                        if taken.is_ok() {
                            idle.found();
                            if done.fetch_add(1, Ordering::Relaxed) == 1 {
                                idle.wake_all();
                            }
                            idle.begin_search();
                        }
                        if done.load(Ordering::Relaxed) == 2 {
                            return;
                        }
                        let is_work =
                            || work.load(Ordering::Relaxed) > 0 || done.load(Ordering::Relaxed) == 2;
                        let _ = idle.sleep(lwp, is_work, None, &Polling(&set, &AtomicUsize::new(0)));
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            work.fetch_add(1, Ordering::Relaxed);
            idle.wake_one();
        }
        lwps.into_iter().for_each(|lwp| lwp.join().unwrap());
    });
}

/// A pinned thread for one of two sleeping LWPs, and one that any may take: both are taken, whichever LWP searches
/// when they arrive.
#[test]
fn what_only_one_lwp_may_run_does_not_keep_others_from_the_rest() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let set = Set::new();
        let idle = Arc::new(Idle::new(set.bells(), Fences::Symmetric));
        // In place of the inbox of LWP 0, the shared queue, and the amount done of each.
        let (own, any) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let done = Arc::new(AtomicUsize::new(0));
        let lwps: Vec<_> = (0..2)
            .map(|lwp| {
                let (idle, own, any, done) = (idle.clone(), own.clone(), any.clone(), done.clone());
                let set = set.clone();
                loom::thread::spawn(move || {
                    let take = |work: &AtomicUsize| {
                        work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
                    };
                    let one_is_done = || {
                        if done.fetch_add(1, Ordering::Relaxed) == 1 {
                            idle.wake_all();
                        }
                    };
                    idle.begin_search();
                    loop {
                        if lwp == 0 && take(&own) {
                            // It does not come back: no waker may rely on it.
                            idle.found_own(|| any.load(Ordering::Relaxed) > 0);
                            return one_is_done();
                        }
                        if take(&any) {
                            idle.found();
                            one_is_done();
                            idle.begin_search();
                        }
                        if done.load(Ordering::Relaxed) == 2 {
                            return;
                        }
                        let is_work = || {
                            (lwp == 0 && own.load(Ordering::Relaxed) > 0)
                                || any.load(Ordering::Relaxed) > 0
                                || done.load(Ordering::Relaxed) == 2
                        };
                        if idle.sleep(lwp, is_work, None, &Polling(&set, &AtomicUsize::new(0))) == Woke::Own {
                            assert_eq!(lwp, 0, "the other LWP has no pinned thread");
                            if take(&own) {
                                return one_is_done();
                            }
                            // Woken late, for a thread that it had already found.
                            idle.begin_search();
                        }
                    }
                })
            })
            .collect();
        own.fetch_add(1, Ordering::Relaxed);
        idle.wake(0);
        any.fetch_add(1, Ordering::Relaxed);
        idle.wake_one();
        lwps.into_iter().for_each(|lwp| lwp.join().unwrap());
    });
}
