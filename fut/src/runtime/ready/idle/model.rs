//! Models of the rules of [`super`].

use std::time::Duration;

use loom::sync::Arc;

use super::*;

/// A set in which no event ever happens, or one event: the number of events, and whether the bell was rung.
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

    /// The bells of two LWPs that share the set.
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

/// The set, as an LWP sees it. The counter is the number of threads that the LWP has made ready.
struct Polling<'a>(&'a Set, &'a AtomicUsize);

impl Poll for Polling<'_> {
    fn begin(&self) -> bool {
        !self.0.has_poller.swap(true, Ordering::AcqRel)
    }

    fn end(&self) {
        self.0.has_poller.swap(false, Ordering::AcqRel);
    }

    fn poll(&self, limit: Option<Duration>, mut before: impl FnMut()) {
        let events = loop {
            let (events, is_rung) = std::mem::take(&mut *self.0.state.lock().unwrap());
            if events > 0 || is_rung {
                break events;
            }
            loom::thread::yield_now();
            // In the model, a time limit is over at once.
            if limit.is_some() {
                break 0;
            }
        };
        if events > 0 {
            before();
            self.1.fetch_add(events, Ordering::Relaxed);
        }
    }
}

fn work_if(is_work: bool) -> Look {
    Look { work: is_work, next: false }
}

/// For an LWP that expects no threads that other LWPs run next. If it watches nevertheless, the time is over
/// immediately.
const QUIET: Watch = Watch { expects: false, time: Duration::ZERO };

/// A thread that an LWP runs next, as other LWPs see it: whether it is there.
#[derive(Debug)]
struct Next(AtomicBool);

impl Next {
    fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn steal(&self) -> bool {
        self.0.compare_exchange(true, false, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn look(&self) -> Look {
        Look { work: false, next: self.is_there() }
    }
}

/// An idle LWP. Until it has taken the thread, it searches, looks twice, and sleeps. With `expects`, it expects a
/// thread at first.
fn thief(
    lwp: usize,
    idle: &Arc<Idle>,
    next: &Arc<Next>,
    set: &std::sync::Arc<Set>,
    mut expects: bool,
) -> loom::thread::JoinHandle<()> {
    let (idle, next, set) = (idle.clone(), next.clone(), set.clone());
    loom::thread::spawn(move || {
        idle.begin_search();
        loop {
            let was_there = next.is_there();
            loom::thread::yield_now();
            if was_there && next.steal() {
                return idle.found();
            }
            let watch = Watch { expects: std::mem::replace(&mut expects, false) || next.is_there(), ..QUIET };
            let woke = idle.sleep(lwp, watch, || next.look(), None, &Polling(&set, &AtomicUsize::new(0)));
            assert_eq!(woke, Woke::Search);
        }
    })
}

/// An LWP puts a thread where it runs next, and then computes for ever. The other LWP takes the thread at its second
/// look, whatever it did before.
#[test]
fn an_idle_lwp_takes_what_a_busy_one_would_run_next() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let set = Set::new();
        let idle = Arc::new(Idle::new(set.bells(), Fences::Symmetric));
        let next = Arc::new(Next(AtomicBool::new(false)));
        let thief = thief(1, &idle, &next, &set, false);
        next.0.store(true, Ordering::Release);
        idle.wake_for_next();
        thief.join().unwrap();
    });
}

/// The same with two idle LWPs. One of them has watched for an earlier thread. It is woken for a thread that only it
/// may run and that never leaves it. So the other idle LWP has to take the thread.
#[test]
fn who_stops_watching_for_its_own_thread_leaves_no_other_behind() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let set = Set::new();
        let bells = vec![set.clone() as std::sync::Arc<dyn Bell>, set.clone(), set.clone()];
        let idle = Arc::new(Idle::new(bells, Fences::Symmetric));
        let (next, own) = (Arc::new(Next(AtomicBool::new(false))), Arc::new(AtomicUsize::new(0)));
        let busy = {
            let (idle, next, own) = (idle.clone(), next.clone(), own.clone());
            loom::thread::spawn(move || {
                idle.begin_search();
                let mut watch = Watch { expects: true, time: Duration::from_secs(3600) };
                loop {
                    if own.load(Ordering::Relaxed) > 0 {
                        return idle.found_own(|| next.is_there());
                    }
                    let look = || Look { work: own.load(Ordering::Relaxed) > 0, next: next.is_there() };
                    // This LWP sleeps on its condition, which has no timeout in a model.
                    if idle.sleep(1, watch, look, None, &Sleeps) == Woke::Own {
                        return;
                    }
                    watch.expects = false;
                }
            })
        };
        let thief = thief(2, &idle, &next, &set, false);
        next.0.store(true, Ordering::Release);
        idle.wake_for_next();
        own.fetch_add(1, Ordering::Relaxed);
        idle.wake(1);
        busy.join().unwrap();
        thief.join().unwrap();
    });
}

/// An LWP goes to sleep last. Meanwhile the other LWP is woken, and puts a thread where it runs next. The first LWP
/// watches, or is woken.
#[test]
fn who_sleeps_last_watches_too() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let set = Set::new();
        let idle = Arc::new(Idle::new(set.bells(), Fences::Symmetric));
        let (next, own) = (Arc::new(Next(AtomicBool::new(false))), Arc::new(AtomicUsize::new(0)));
        let thief = thief(1, &idle, &next, &set, true);
        let waker = {
            let (idle, own) = (idle.clone(), own.clone());
            loom::thread::spawn(move || {
                own.fetch_add(1, Ordering::Relaxed);
                idle.wake(0);
            })
        };
        idle.begin_search();
        let own = || work_if(own.load(Ordering::Relaxed) > 0);
        if own().work || idle.sleep(0, QUIET, own, None, &Sleeps) == Woke::Search {
            idle.found_own(|| next.is_there());
        }
        next.0.store(true, Ordering::Release);
        idle.wake_for_next();
        waker.join().unwrap();
        thief.join().unwrap();
    });
}

/// The set of an LWP that does not poll.
struct Sleeps;

impl Poll for Sleeps {
    fn begin(&self) -> bool {
        false
    }

    fn end(&self) {}

    fn poll(&self, _limit: Option<Duration>, _before: impl FnMut()) {}
}

/// Two LWPs share a set. An event makes a thread of the set's poller ready, and another thread comes from outside. Both
/// threads are run, whichever of them an LWP is woken for.
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
                    // Stands for the LWP's own queue, into which it polls.
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
                        let look =
                            || work_if(work.load(Ordering::Relaxed) > 0 || done.load(Ordering::Relaxed) == 2);
                        if idle.sleep(lwp, QUIET, look, None, &Polling(&set, &own)) == Woke::Polled {
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
        // Like the reactor, this makes ready what it finds.
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
        // Stand for the queues: the amount of work available, and the amount done.
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
                        let look =
                            || work_if(work.load(Ordering::Relaxed) > 0 || done.load(Ordering::Relaxed) == 2);
                        let _ = idle.sleep(lwp, QUIET, look, None, &Polling(&set, &AtomicUsize::new(0)));
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

/// A pinned thread arrives for one of two sleeping LWPs, and another one that any may take. Both are taken, whichever
/// LWP searches when they arrive.
#[test]
fn what_only_one_lwp_may_run_does_not_keep_others_from_the_rest() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let set = Set::new();
        let idle = Arc::new(Idle::new(set.bells(), Fences::Symmetric));
        // Stand for the inbox of LWP 0 and the shared queue; `done` is the amount of work done.
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
                            // This LWP does not come back, so no waker may rely on it.
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
                        let look = || {
                            let own = lwp == 0 && own.load(Ordering::Relaxed) > 0;
                            let any = any.load(Ordering::Relaxed) > 0;
                            work_if(own || any || done.load(Ordering::Relaxed) == 2)
                        };
                        if idle.sleep(lwp, QUIET, look, None, &Polling(&set, &AtomicUsize::new(0)))
                            == Woke::Own
                        {
                            assert_eq!(lwp, 0, "the other LWP has no pinned thread");
                            if take(&own) {
                                return one_is_done();
                            }
                            // The LWP was woken late, for a thread that it had already found.
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
