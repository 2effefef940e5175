//! Idle LWPs: how they go to sleep in the kernel, and how they are woken.
//!
//! 1. A thread that makes another one ready puts it into a queue, executes the light fence, and checks whether an LWP
//!    sleeps.
//! 2. An LWP that finds no work enters the list of sleepers, executes the heavy fence, and checks all queues once more.
//!    So at least one of the two sees the other's write.
//! 3. While an LWP searches, no other is woken: the searching one finds the work. When the last searching LWP stops
//!    because it has found a thread, it wakes the next LWP: there may be more work.
//! 4. The waker takes the sleeping LWP off the list, and counts it as searching.
//! 5. An LWP that finds work at its last check takes itself off the list. If it is no longer on the list, it was woken
//!    meanwhile and counts as searching.
//! 6. For a thread that only one LWP may run, that LWP is woken even if others search. It then does not count as
//!    searching: no waker has relied on it, and it wakes no other LWP when it has its thread. But if a searching LWP
//!    finds such a thread, wakers may have relied on it. If it was the last searching one, it executes the heavy fence,
//!    checks for work that others could take, and wakes one of them only if there is some. Without this check, each
//!    such thread would wake an LWP in vain.
//! 7. An LWP may be woken for its own thread before its last check, and then find work at that check. It counts as
//!    searching nevertheless: that work may have been queued while it still searched. (The model found this; see
//!    `model`.)
//! 8. An LWP sleeps on a condition, or as the poller of its set of descriptors and timers (`reactor/mod.rs`), which
//!    waits in the kernel. Under the lock of its slot, it publishes which of the two it does, and checks there for a
//!    wakeup before it waits. A waker writes the wakeup under the same lock, and rings the bell of the set if the LWP
//!    polls. The bell persists until the next wait. So the LWP sees the wakeup, or is rung.
//! 9. A poller that returns with something to do first takes itself off the list, and only then makes threads ready. No
//!    LWP is woken for these threads. The poller does not count as searching, since no waker relies on it. If it is no
//!    longer on the list, however, rules 4 and 6 apply to it; it makes its threads ready nevertheless.
//! 10. When the last LWP goes to sleep, it needs no heavy fence, because no other thread then makes threads ready
//!     without a full fence. Only LWPs that do not sleep use the light fence. An LWP that is woken later, or leaves the
//!     list by itself, takes the lock of the list after the last LWP has. Under that lock the last LWP also stops
//!     counting as searching, so no waker relies on it any more. Threads that are not workers execute a full fence.
//! 11. A thread that an LWP runs next (`next.rs`) is mostly taken by that LWP before another LWP that is woken for it
//!     could look. So no LWP is woken for it while another one watches. If an LWP that has searched sees such a thread,
//!     or sees that there was one since it last slept, it watches: it sleeps for a short time, at most a millisecond,
//!     and then searches again. One LWP watches at a time. Meanwhile LWPs are still woken for all other threads. If an
//!     LWP stops watching without being counted as searching, wakers may have relied on it. So it executes the heavy
//!     fence, looks for such threads, and wakes another LWP if there is one.
//!
//! The two fences are in `fences.rs`.

mod fences;
#[cfg(all(test, loom))]
mod model;

use std::{
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use crate::model_check::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};
pub(in crate::runtime) use fences::Fences;

/// The idle LWPs of a runtime.
#[derive(Debug)]
pub(in crate::runtime) struct Idle {
    /// Length of `sleepers`.
    asleep: AtomicUsize,
    searching: AtomicUsize,
    /// Whether an LWP watches (rule 11).
    watches: AtomicBool,
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
    /// The bell to ring if the LWP polls.
    bell: Arc<dyn Bell>,
}

#[derive(Debug)]
struct SleepState {
    woken: Option<Woke>,
    /// The LWP waits in the kernel, or is about to, and has to be rung (rule 8).
    polls: bool,
}

/// Ends the wait of a poller. A ring persists until the next wait.
pub(in crate::runtime) trait Bell: std::fmt::Debug + Send + Sync {
    fn ring(&self);
}

/// The set of descriptors and timers of an LWP that goes to sleep.
pub(in crate::runtime) trait Poll {
    /// Becomes the poller of the set; `false` if another LWP is.
    fn begin(&self) -> bool;
    fn end(&self);
    /// Waits until there is something to do, a ring, or `limit` is over. If there is something to do, calls `before`,
    /// and then makes threads ready.
    fn poll(&self, limit: Option<Duration>, before: impl FnMut());
}

/// What an LWP sees at its last check before it sleeps.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) struct Look {
    /// There is a thread that this LWP can take.
    pub(in crate::runtime) work: bool,
    /// There is a thread that some LWP runs next (rule 11).
    pub(in crate::runtime) next: bool,
}

/// How an LWP watches (rule 11).
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) struct Watch {
    /// There was such a thread lately, so the LWP watches even if it sees none.
    pub(in crate::runtime) expects: bool,
    /// After this time the LWP searches again.
    pub(in crate::runtime) time: Duration,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Woke {
    /// There may be work: the LWP counts as searching.
    Search,
    /// There is a thread that only this LWP may run, or there was one before the LWP went to sleep. The LWP does not
    /// count as searching (rule 6).
    Own,
    /// By polling, the LWP has made threads ready itself. It does not count as searching (rule 9).
    Polled,
    /// The time limit of the last sleeper is over, and all LWPs still sleep.
    AllAsleep,
}

impl Idle {
    /// Makes the state for as many LWPs as there are bells. Each bell is that of the set of one LWP.
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
            watches: AtomicBool::new(false),
            sleepers: Mutex::new(Vec::new()),
            slots: bells.into_iter().map(slot).collect(),
            fences,
        }
    }

    /// Rule 1. Called after a thread that any LWP may run was put into a queue.
    #[inline]
    pub(in crate::runtime) fn wake_one(&self) {
        self.fences.light();
        if self.asleep.load(Ordering::Relaxed) > 0 && self.searching.load(Ordering::Relaxed) == 0 {
            self.wake_slowly(None, Woke::Search);
        }
    }

    /// Rule 1. Called after an LWP has put a thread where the LWP takes it next (rule 11).
    #[inline]
    pub(in crate::runtime) fn wake_for_next(&self) {
        self.fences.light();
        if self.asleep.load(Ordering::Relaxed) > 0
            && !self.watches.load(Ordering::Relaxed)
            && self.searching.load(Ordering::Relaxed) == 0
        {
            self.wake_slowly(None, Woke::Search);
        }
    }

    /// Rules 1 and 6. Called after a thread for this LWP was put into its inbox.
    #[inline]
    pub(in crate::runtime) fn wake(&self, lwp: usize) {
        self.fences.light();
        if self.slots[lwp].taken.load(Ordering::Relaxed) {
            self.wake_slowly(Some(lwp), Woke::Own);
        }
    }

    /// Wakes all LWPs, so that they check for work and for shutdown.
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

    /// Called when the LWP has no work and begins to search.
    pub(in crate::runtime) fn begin_search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// Called when the searching LWP has found work (rule 3).
    pub(in crate::runtime) fn found(&self) {
        // SeqCst: orders this before the check of the sleepers; pairs with the fences in `sleep` of another LWP.
        if self.searching.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.wake_one();
        }
    }

    /// Called when the searching LWP has found a thread that only it may run (rule 6).
    pub(in crate::runtime) fn found_own(&self, is_work_for_others: impl Fn() -> bool) {
        if self.searching.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        self.wake_one_if(is_work_for_others);
    }

    /// Called after this LWP has withdrawn something on which wakers may have relied. Wakes another LWP if there is
    /// work.
    fn wake_one_if(&self, is_work: impl Fn() -> bool) {
        // Orders the withdrawal before the check of the sleepers; pairs with the fences in `sleep` of another LWP.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) > 0 {
            self.fences.heavy();
            if is_work() {
                self.wake_one();
            }
        }
    }

    /// Called when the searching LWP has found nothing. It sleeps until it is woken, unless `look` sees work at the
    /// last check. If the LWP sees a thread that some LWP runs next, or expects one, it watches, unless another LWP
    /// does. With `patience`, the LWP that goes to sleep last wakes after that time.
    pub(in crate::runtime) fn sleep(
        &self,
        lwp: usize,
        watch: Watch,
        look: impl Fn() -> Look,
        patience: Option<Duration>,
        set: &impl Poll,
    ) -> Woke {
        let slot = &self.slots[lwp];
        // This comes before the LWP is on the list. Otherwise, each put during the heavy fence would wake it.
        let mut watches = watch.expects && self.begin_watch();
        let mut sleepers = self.sleepers();
        sleepers.push(lwp);
        slot.taken.store(true, Ordering::Relaxed);
        let all_asleep = sleepers.len() == self.slots.len();
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        // Under the lock: rule 10. Acquire: pairs with the SeqCst in `found` and `found_own`. If another LWP has
        // stopped watching and relies on this one, this one then sees that no LWP watches.
        self.searching.fetch_sub(1, Ordering::AcqRel);
        drop(sleepers);
        if all_asleep {
            // Rule 10.
            fence(Ordering::SeqCst);
        } else {
            // Rule 2.
            self.fences.heavy();
        }
        let seen = look();
        let woke = if seen.work && self.leave_list(lwp) {
            self.searching.fetch_add(1, Ordering::Relaxed);
            Woke::Search
        } else {
            watches |= seen.next && self.begin_watch();
            // Watch even if all LWPs sleep: an LWP that is woken and puts such a thread relies on the one that watches.
            let limit = match watches {
                true => Some(Limit::Watch(watch.time)),
                false => patience.filter(|_| all_asleep).map(Limit::Patience),
            };
            let is_poller = set.begin();
            let woke = self.wait(lwp, seen.work, limit, is_poller.then_some(set));
            if is_poller {
                set.end();
            }
            woke
        };
        if watches {
            self.stop_watching(woke, || look().next);
        }
        woke
    }

    /// Rule 11: one LWP watches at a time.
    fn begin_watch(&self) -> bool {
        self.watches.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Rule 11.
    fn stop_watching(&self, woke: Woke, is_next: impl Fn() -> bool) {
        self.watches.store(false, Ordering::Release);
        if woke != Woke::Search {
            self.wake_one_if(is_next);
        }
    }

    /// Sleeps until woken. With a `set`, sleeps as its poller.
    fn wait(&self, lwp: usize, sees_work: bool, limit: Option<Limit>, set: Option<&impl Poll>) -> Woke {
        let slot = &self.slots[lwp];
        let ends = || limit.map(|limit| Instant::now() + limit.time());
        let mut end = ends();
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
            let time = end.map(|end| end.saturating_duration_since(Instant::now()));
            match (set, time) {
                (Some(set), time) => {
                    state.polls = true;
                    drop(state);
                    let mut left = None;
                    // Rule 9. The poll may return early, with nothing to do.
                    set.poll(time, || left = Some(self.leave_list(lwp)));
                    state = slot.state();
                    state.polls = false;
                    match left {
                        Some(true) => return Woke::Polled,
                        Some(false) => {
                            // The waker that took this LWP off the list is about to wake it.
                            while state.woken.is_none() {
                                state = slot.wakes.wait(state).unwrap_or_else(PoisonError::into_inner);
                            }
                            continue;
                        }
                        None => {}
                    }
                }
                (None, None) => state = slot.wakes.wait(state).unwrap_or_else(PoisonError::into_inner),
                (None, Some(time)) => {
                    state = slot.wakes.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            if !is_over || state.woken.is_some() {
                continue;
            }
            let woke = match limit {
                Some(Limit::Patience(_)) if self.leave_as_last(lwp) => Woke::AllAsleep,
                Some(Limit::Watch(_)) if self.leave_list(lwp) => Woke::Search,
                _ => {
                    end = ends();
                    continue;
                }
            };
            self.searching.fetch_add(1, Ordering::Relaxed);
            return woke;
        }
    }

    /// Rule 5: takes `lwp` off the list, if it is on it. Returns whether it was.
    fn leave_list(&self, lwp: usize) -> bool {
        self.leave(lwp, &mut self.sleepers())
    }

    /// The same, but only if all LWPs are on the list and `lwp` entered it last. Others that were last earlier may have
    /// the same patience.
    fn leave_as_last(&self, lwp: usize) -> bool {
        let mut sleepers = self.sleepers();
        let is_last = sleepers.len() == self.slots.len() && sleepers.last() == Some(&lwp);
        is_last && self.leave(lwp, &mut sleepers)
    }

    fn leave(&self, lwp: usize, sleepers: &mut Vec<usize>) -> bool {
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

/// How long an LWP sleeps if it is not woken.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// Until a deadlock is likely.
    Patience(Duration),
    /// Rule 11.
    Watch(Duration),
}

impl Limit {
    fn time(self) -> Duration {
        let (Limit::Patience(time) | Limit::Watch(time)) = self;
        time
    }
}

impl SleepSlot {
    fn state(&self) -> MutexGuard<'_, SleepState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
