//! LWPs without work: how they go to sleep in the kernel, and how they are woken.
//!
//! 1. Whoever makes a thread ready puts it into a queue, passes the light fence, and looks whether an LWP sleeps.
//! 2. An LWP that finds no work enters the list of sleepers, passes the heavy fence, and looks into all queues once
//!    more. So one of the two sees the other.
//! 3. While an LWP searches, nobody is woken: one that searches finds the work. The last that stops searching because
//!    it found something wakes the next: there may be more.
//! 4. An LWP that sleeps is taken off the list by whoever wakes it. The waker counts it as searching.
//! 5. An LWP that finds work at its last look takes itself off the list; if it is not there any more, it was woken
//!    meanwhile and counts as searching.
//! 6. A thread that only one LWP may run wakes that LWP, whoever searches. So woken, the LWP does not count as searching:
//!    nobody relies on it, and it wakes nobody when it has its thread. One that searched when it found such a thread
//!    may have been relied on. If it was the last, it passes the heavy fence, looks for work that others could take,
//!    and wakes one of them only if there is some. Otherwise each such thread would wake an LWP for nothing.
//! 7. An LWP that was woken for its own thread before its last look, and saw work there, counts as searching all the
//!    same: what it saw may have come while it still did. (The model found this; see `model`.)
//!
//! Making ready is frequent, going to sleep is rare and costs a system call anyway. So where the kernel has
//! `membarrier`, the light fence is none at all (for the compiler only), and the heavy one a system call that makes
//! all running threads of the process pass a fence (membarrier(2), PRIVATE_EXPEDITED; Linux 4.14).

use std::sync::PoisonError;

use crate::model_check::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};

/// See above.
#[derive(Debug)]
pub(in crate::runtime) struct Idle {
    /// As many as are in `sleepers`.
    asleep: AtomicUsize,
    searching: AtomicUsize,
    sleepers: Mutex<Vec<usize>>,
    seats: Box<[Seat]>,
    fences: Fences,
}

/// Where one LWP sleeps.
#[derive(Debug)]
struct Seat {
    /// It is in `sleepers`.
    taken: AtomicBool,
    woken: Mutex<Option<Woke>>,
    wakes: Condvar,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Woke {
    /// There is work, or somebody says so: the LWP counts as searching.
    Search,
    /// There is a thread that only this LWP may run, or was before it went to sleep; it does not count as searching
    /// (rule 6).
    Own,
    /// The time given to the last sleeper is over, and all LWPs sleep still.
    AllAsleep,
}

impl Idle {
    pub(in crate::runtime) fn new(lwps: usize, fences: Fences) -> Idle {
        let seat = |_| Seat { taken: AtomicBool::new(false), woken: Mutex::new(None), wakes: Condvar::new() };
        Idle {
            asleep: AtomicUsize::new(0),
            searching: AtomicUsize::new(0),
            sleepers: Mutex::new(Vec::new()),
            seats: (0..lwps).map(seat).collect(),
            fences,
        }
    }

    /// Rule 1, when a thread that any LWP may run is in a queue.
    #[inline]
    pub(in crate::runtime) fn wake_one(&self) {
        self.fences.light();
        if self.asleep.load(Ordering::Relaxed) > 0 && self.searching.load(Ordering::Relaxed) == 0 {
            self.wake_slowly(None, Woke::Search);
        }
    }

    /// Rules 1 and 6, when the thread is for this LWP.
    #[inline]
    pub(in crate::runtime) fn wake(&self, lwp: usize) {
        self.fences.light();
        if self.seats[lwp].taken.load(Ordering::Relaxed) {
            self.wake_slowly(Some(lwp), Woke::Own);
        }
    }

    /// All LWPs look at the world again.
    pub(in crate::runtime) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for lwp in 0..self.seats.len() {
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
        let seat = &self.seats[lwp];
        seat.taken.store(false, Ordering::Relaxed);
        if why == Woke::Search {
            // Rule 4.
            self.searching.fetch_add(1, Ordering::Relaxed);
        }
        drop(sleepers);
        *seat.woken.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        seat.wakes.notify_one();
    }

    /// The LWP has run out of work and looks for some.
    pub(in crate::runtime) fn begin_search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// It has found some (rule 3).
    pub(in crate::runtime) fn found(&self) {
        // SeqCst: orders this before the look at the sleepers; pairs with the fences of `sleep` of another LWP.
        if self.searching.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.wake_one();
        }
    }

    /// The LWP, which searched, has found a thread that nothing else may run (rule 6).
    pub(in crate::runtime) fn found_own(&self, is_work_for_others: impl Fn() -> bool) {
        if self.searching.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        // Orders that before the look at the sleepers; pairs with the fences of `sleep` of another LWP.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) > 0 {
            self.fences.heavy();
            if is_work_for_others() {
                self.wake_one();
            }
        }
    }

    /// The LWP, which searches, has found nothing: it sleeps until it is woken, unless `is_work` at the last look.
    /// With `patience`, the LWP that goes to sleep last gives up after that time.
    pub(in crate::runtime) fn sleep(
        &self,
        lwp: usize,
        is_work: impl Fn() -> bool,
        patience: Option<std::time::Duration>,
    ) -> Woke {
        let seat = &self.seats[lwp];
        let mut sleepers = self.sleepers();
        sleepers.push(lwp);
        seat.taken.store(true, Ordering::Relaxed);
        let all_asleep = sleepers.len() == self.seats.len();
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        drop(sleepers);
        self.searching.fetch_sub(1, Ordering::Relaxed);
        // Rule 2.
        self.fences.heavy();
        let sees_work = is_work();
        if sees_work && self.leave_list(lwp) {
            self.searching.fetch_add(1, Ordering::Relaxed);
            return Woke::Search;
        }
        let mut woken = seat.woken.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(why) = woken.take() {
                if why == Woke::Own && sees_work {
                    // Rule 7.
                    self.searching.fetch_add(1, Ordering::Relaxed);
                    return Woke::Search;
                }
                return why;
            }
            let Some(patience) = patience.filter(|_| all_asleep) else {
                woken = seat.wakes.wait(woken).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            woken = seat.wakes.wait_timeout(woken, patience).unwrap_or_else(PoisonError::into_inner).0;
            if woken.is_none()
                && self.asleep.load(Ordering::Relaxed) == self.seats.len()
                && self.leave_list(lwp)
            {
                self.searching.fetch_add(1, Ordering::Relaxed);
                return Woke::AllAsleep;
            }
        }
    }

    /// Rule 5: takes `lwp` off the list, if it is there.
    fn leave_list(&self, lwp: usize) -> bool {
        let mut sleepers = self.sleepers();
        let Some(place) = sleepers.iter().position(|sleeper| *sleeper == lwp) else { return false };
        sleepers.swap_remove(place);
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        self.seats[lwp].taken.store(false, Ordering::Relaxed);
        true
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<usize>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pair of fences of rules 1 and 2.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) enum Fences {
    /// Both are instructions.
    Symmetric,
    /// The light one is none, the heavy one is a system call.
    #[cfg(not(loom))]
    Asymmetric,
}

impl Fences {
    /// What this kernel can do.
    #[cfg(not(loom))]
    pub(in crate::runtime) fn of_this_kernel() -> Fences {
        // SAFETY: registering has no requirement, and is allowed more than once.
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
            // It fails only for a moment, when the kernel has no memory for a set of CPUs.
            // SAFETY: has no requirement; the process is registered.
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
    use loom::sync::Arc;

    use super::*;

    /// Two LWPs take work out of a queue of two places and sleep when there is none; two pieces of work come.
    #[test]
    fn no_work_is_left_while_all_lwps_sleep() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let idle = Arc::new(Idle::new(2, Fences::Symmetric));
            // Stands for the queues: how much work there is, and how much was done.
            let work = Arc::new(AtomicUsize::new(0));
            let done = Arc::new(AtomicUsize::new(0));
            let lwps: Vec<_> = (0..2)
                .map(|lwp| {
                    let (idle, work, done) = (idle.clone(), work.clone(), done.clone());
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
                            let _ = idle.sleep(lwp, is_work, None);
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

    /// A thread of its own for one of two sleeping LWPs, and one that any may take: both are taken, whoever searches
    /// when they come.
    #[test]
    fn what_only_one_lwp_may_run_does_not_keep_others_from_the_rest() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let idle = Arc::new(Idle::new(2, Fences::Symmetric));
            // Stand for the inbox of LWP 0, the queue of all, and what was done of either.
            let (own, any) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let done = Arc::new(AtomicUsize::new(0));
            let lwps: Vec<_> = (0..2)
                .map(|lwp| {
                    let (idle, own, any, done) = (idle.clone(), own.clone(), any.clone(), done.clone());
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
                                // It does not come back: nobody may rely on it.
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
                            if idle.sleep(lwp, is_work, None) == Woke::Own {
                                assert_eq!(lwp, 0, "nothing is for the other one");
                                if take(&own) {
                                    return one_is_done();
                                }
                                // Woken late, for what it has found by itself.
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
