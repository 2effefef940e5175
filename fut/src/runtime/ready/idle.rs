//! Idle LWPs: how they go to sleep in the kernel, and how they are woken.
//!
//! 1. A thread that makes another one ready puts it into a queue, executes the light fence, and checks whether an LWP
//!    sleeps.
//! 2. An LWP that finds no work enters the list of sleepers, executes the heavy fence, and checks all queues once more.
//!    So at least one of the two sees the other's write.
//! 3. While an LWP searches, none is woken: the searching one finds the work. When the last searching LWP stops because
//!    it found a thread, it wakes the next: there may be more.
//! 4. The waker takes the sleeping LWP off the list, and counts it as searching.
//! 5. An LWP that finds work at its last check takes itself off the list; if it is no longer on it, it was woken
//!    meanwhile and counts as searching.
//! 6. For a thread that only one LWP may run, that LWP is woken even if others search. It then does not count as
//!    searching: no waker has relied on it, and it wakes no other when it has its thread. But if a searching LWP finds
//!    such a thread, wakers may have relied on it. If it was the last, it executes the heavy fence, checks for work
//!    that others could take, and wakes one of them only if there is some. Otherwise each such thread would wake an LWP
//!    in vain.
//! 7. An LWP that was woken for its own thread before its last check, and found work there, counts as searching
//!    nevertheless: that work may have been queued while it still searched. (The model found this; see `model`.)
//! 8. An LWP sleeps on a condition, or as the poller of its set of descriptors and timers (`reactor/mod.rs`), which
//!    waits in the kernel. It publishes which under the lock of its slot, and looks there for a wakeup before it waits;
//!    a waker writes the wakeup under that lock, and rings the bell of the set if the LWP polls. The bell persists until
//!    the next wait. So the LWP sees the wakeup, or is rung.
//! 9. A poller that returns with something to do first takes itself off the list, and only then makes threads ready: for
//!    those no LWP is woken. It does not count as searching, since no waker relies on it, unless it is no longer on the
//!    list: then rules 4 and 6 apply to it, and it makes its threads ready nevertheless.
//! 10. When the last LWP goes to sleep, no other makes threads ready without a full fence: only LWPs that do not sleep
//!     use the light one, and one that is woken later has taken the lock of the list after it. So the last needs no heavy
//!     fence. Threads that are no workers execute a full fence.
//!
//! Making ready is frequent; going to sleep is rare and costs a system call anyway. So if the kernel has `membarrier`,
//! the light fence is a compiler fence only, and the heavy one is a system call that makes all running threads of the
//! process execute a fence (membarrier(2), PRIVATE_EXPEDITED; Linux 4.14).

use std::sync::{Arc, PoisonError};

use crate::model_check::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};

/// The idle LWPs of a runtime.
#[derive(Debug)]
pub(in crate::runtime) struct Idle {
    /// Length of `sleepers`.
    asleep: AtomicUsize,
    searching: AtomicUsize,
    sleepers: Mutex<Vec<usize>>,
    slots: Box<[SleepSlot]>,
    fences: Fences,
}

/// The sleep state of one LWP.
#[derive(Debug)]
struct SleepSlot {
    /// The LWP is in `sleepers`.
    taken: AtomicBool,
    state: Mutex<SleepState>,
    wakes: Condvar,
    /// Rung if it polls.
    bell: Arc<dyn Bell>,
}

#[derive(Debug)]
struct SleepState {
    woken: Option<Woke>,
    /// It waits in the kernel, or is about to, and has to be rung (rule 8).
    polls: bool,
}

/// What ends the wait of a poller: it persists until the next wait.
pub(in crate::runtime) trait Bell: std::fmt::Debug + Send + Sync {
    fn ring(&self);
}

/// The set of descriptors and timers of an LWP that goes to sleep.
pub(in crate::runtime) trait Poll {
    /// Becomes the poller of the set; `false` if another LWP is.
    fn begin(&self) -> bool;
    fn end(&self);
    /// Waits until there is something to do, a ring, or this time is over. If there is something to do, calls `before`,
    /// and then makes threads ready.
    fn poll(&self, limit: Option<std::time::Duration>, before: impl FnMut());
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Woke {
    /// There may be work: the LWP counts as searching.
    Search,
    /// There is a thread that only this LWP may run, or there was one before it went to sleep; it does not count as
    /// searching (rule 6).
    Own,
    /// It has made threads of its own ready, by polling; it does not count as searching (rule 9).
    Polled,
    /// The time limit of the last sleeper is over, and all LWPs still sleep.
    AllAsleep,
}

impl Idle {
    /// For as many LWPs as there are bells: that of the set of each.
    pub(in crate::runtime) fn new(bells: Vec<Arc<dyn Bell>>, fences: Fences) -> Idle {
        let slot = |bell| SleepSlot {
            taken: AtomicBool::new(false),
            state: Mutex::new(SleepState { woken: None, polls: false }),
            wakes: Condvar::new(),
            bell,
        };
        Idle {
            asleep: AtomicUsize::new(0),
            searching: AtomicUsize::new(0),
            sleepers: Mutex::new(Vec::new()),
            slots: bells.into_iter().map(slot).collect(),
            fences,
        }
    }

    /// Rule 1, after a thread that any LWP may run was put into a queue.
    #[inline]
    pub(in crate::runtime) fn wake_one(&self) {
        self.fences.light();
        if self.asleep.load(Ordering::Relaxed) > 0 && self.searching.load(Ordering::Relaxed) == 0 {
            self.wake_slowly(None, Woke::Search);
        }
    }

    /// Rules 1 and 6, after a thread for this LWP was put into its inbox.
    #[inline]
    pub(in crate::runtime) fn wake(&self, lwp: usize) {
        self.fences.light();
        if self.slots[lwp].taken.load(Ordering::Relaxed) {
            self.wake_slowly(Some(lwp), Woke::Own);
        }
    }

    /// Wakes all LWPs, to check for work and shutdown.
    pub(in crate::runtime) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for lwp in 0..self.slots.len() {
            self.wake_slowly(Some(lwp), Woke::Search);
        }
    }

    #[cold]
    fn wake_slowly(&self, wanted: Option<usize>, why: Woke) {
        let mut sleepers = self.sleepers();
        let place = match wanted {
            Some(lwp) => sleepers.iter().position(|sleeper| *sleeper == lwp),
            None => sleepers.len().checked_sub(1),
        };
        let Some(place) = place else { return };
        let lwp = sleepers.swap_remove(place);
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        let slot = &self.slots[lwp];
        slot.taken.store(false, Ordering::Relaxed);
        if why == Woke::Search {
            // Rule 4.
            self.searching.fetch_add(1, Ordering::Relaxed);
        }
        drop(sleepers);
        let mut state = slot.state();
        state.woken = Some(why);
        let polls = state.polls;
        drop(state);
        if polls {
            slot.bell.ring();
        } else {
            slot.wakes.notify_one();
        }
    }

    /// The LWP has no work and begins to search.
    pub(in crate::runtime) fn begin_search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// The searching LWP has found work (rule 3).
    pub(in crate::runtime) fn found(&self) {
        // SeqCst: orders this before the check of the sleepers; pairs with the fences in `sleep` of another LWP.
        if self.searching.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.wake_one();
        }
    }

    /// The searching LWP has found a thread that only it may run (rule 6).
    pub(in crate::runtime) fn found_own(&self, is_work_for_others: impl Fn() -> bool) {
        if self.searching.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        // Orders the decrement before the check of the sleepers; pairs with the fences in `sleep` of another LWP.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) > 0 {
            self.fences.heavy();
            if is_work_for_others() {
                self.wake_one();
            }
        }
    }

    /// The searching LWP has found nothing: it sleeps until it is woken, unless `is_work` is true at the last check.
    /// With `patience`, the LWP that goes to sleep last wakes after that time.
    pub(in crate::runtime) fn sleep(
        &self,
        lwp: usize,
        is_work: impl Fn() -> bool,
        patience: Option<std::time::Duration>,
        set: &impl Poll,
    ) -> Woke {
        let slot = &self.slots[lwp];
        let mut sleepers = self.sleepers();
        sleepers.push(lwp);
        slot.taken.store(true, Ordering::Relaxed);
        let all_asleep = sleepers.len() == self.slots.len();
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        drop(sleepers);
        self.searching.fetch_sub(1, Ordering::Relaxed);
        if all_asleep {
            // Rule 10.
            fence(Ordering::SeqCst);
        } else {
            // Rule 2.
            self.fences.heavy();
        }
        let sees_work = is_work();
        if sees_work && self.leave_list(lwp) {
            self.searching.fetch_add(1, Ordering::Relaxed);
            return Woke::Search;
        }
        let patience = patience.filter(|_| all_asleep);
        let is_poller = set.begin();
        let woke = self.wait(lwp, sees_work, patience, is_poller.then_some(set));
        if is_poller {
            set.end();
        }
        woke
    }

    /// Sleeps until woken; as a poller with `set`.
    fn wait(
        &self,
        lwp: usize,
        sees_work: bool,
        patience: Option<std::time::Duration>,
        set: Option<&impl Poll>,
    ) -> Woke {
        let slot = &self.slots[lwp];
        let mut state = slot.state();
        loop {
            if let Some(why) = state.woken.take() {
                if why == Woke::Own && sees_work {
                    // Rule 7.
                    self.searching.fetch_add(1, Ordering::Relaxed);
                    return Woke::Search;
                }
                return why;
            }
            let mut timed_out = false;
            match (set, patience) {
                (Some(set), patience) => {
                    state.polls = true;
                    drop(state);
                    let mut left = None;
                    let start = patience.map(|_| std::time::Instant::now());
                    // Rule 9.
                    set.poll(patience, || left = Some(self.leave_list(lwp)));
                    timed_out =
                        start.zip(patience).is_some_and(|(start, patience)| start.elapsed() >= patience);
                    state = slot.state();
                    state.polls = false;
                    match left {
                        Some(true) => return Woke::Polled,
                        Some(false) => {
                            // Whoever took it off the list is about to wake it.
                            while state.woken.is_none() {
                                state = slot.wakes.wait(state).unwrap_or_else(PoisonError::into_inner);
                            }
                            continue;
                        }
                        None => {}
                    }
                }
                (None, None) => state = slot.wakes.wait(state).unwrap_or_else(PoisonError::into_inner),
                (None, Some(patience)) => {
                    state =
                        slot.wakes.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
                    timed_out = true;
                }
            }
            if timed_out
                && state.woken.is_none()
                && self.asleep.load(Ordering::Relaxed) == self.slots.len()
                && self.leave_list(lwp)
            {
                self.searching.fetch_add(1, Ordering::Relaxed);
                return Woke::AllAsleep;
            }
        }
    }

    /// Rule 5: takes `lwp` off the list, if it is on it.
    fn leave_list(&self, lwp: usize) -> bool {
        let mut sleepers = self.sleepers();
        let Some(place) = sleepers.iter().position(|sleeper| *sleeper == lwp) else { return false };
        sleepers.swap_remove(place);
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        self.slots[lwp].taken.store(false, Ordering::Relaxed);
        true
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<usize>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SleepSlot {
    fn state(&self) -> MutexGuard<'_, SleepState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pair of fences of rules 1 and 2.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) enum Fences {
    /// Both are fence instructions.
    Symmetric,
    /// The light one is a compiler fence, the heavy one a system call.
    #[cfg(not(loom))]
    Asymmetric,
}

impl Fences {
    /// The best pair that this kernel supports.
    #[cfg(not(loom))]
    pub(in crate::runtime) fn of_this_kernel() -> Fences {
        // SAFETY: registering has no precondition, and may be repeated.
        let registered =
            unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) };
        if registered == 0 { Fences::Asymmetric } else { Fences::Symmetric }
    }

    #[cfg(loom)]
    pub(in crate::runtime) fn of_this_kernel() -> Fences {
        Fences::Symmetric
    }

    #[inline]
    fn light(self) {
        match self {
            Fences::Symmetric => fence(Ordering::SeqCst),
            #[cfg(not(loom))]
            Fences::Asymmetric => std::sync::atomic::compiler_fence(Ordering::SeqCst),
        }
    }

    fn heavy(self) {
        fence(Ordering::SeqCst);
        #[cfg(not(loom))]
        if matches!(self, Fences::Asymmetric) {
            // It fails only temporarily, when the kernel has no memory for a CPU mask. SAFETY: accesses no memory; the
            // process is registered.
            while unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) } != 0 {
                std::thread::yield_now();
            }
        }
    }
}

/// include/uapi/linux/membarrier.h
#[cfg(not(loom))]
const MEMBARRIER_PRIVATE_EXPEDITED: i32 = 1 << 3;
#[cfg(not(loom))]
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

#[cfg(all(test, loom))]
mod model {
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
                            work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                                .is_ok()
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
                            work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                                .is_ok()
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
                            if idle.sleep(lwp, is_work, None, &Polling(&set, &AtomicUsize::new(0)))
                                == Woke::Own
                            {
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
}
