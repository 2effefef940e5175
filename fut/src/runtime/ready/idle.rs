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
//!
//! Making ready is frequent, going to sleep is rare and costs a system call anyway. So where the kernel has
//! `membarrier`, the light fence is none at all (for the compiler only), and the heavy one a system call that makes
//! all running threads of the process pass a fence (membarrier(2), PRIVATE_EXPEDITED; Linux 4.14).

use std::sync::PoisonError;

use crate::model_check::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering, fence},
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
    woken: Mutex<bool>,
    wakes: Condvar,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Woke {
    /// There is work, or somebody says so: the LWP counts as searching.
    Search,
    /// The time given to the last sleeper is over, and all LWPs sleep still.
    AllAsleep,
}

impl Idle {
    pub(in crate::runtime) fn new(lwps: usize, fences: Fences) -> Idle {
        let seat = |_| Seat { woken: Mutex::new(false), wakes: Condvar::new() };
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
            self.wake_slowly(None);
        }
    }

    /// Rule 1, when the thread is for this LWP.
    pub(in crate::runtime) fn wake(&self, lwp: usize) {
        self.fences.light();
        if self.asleep.load(Ordering::Relaxed) > 0 {
            self.wake_slowly(Some(lwp));
        }
    }

    /// All LWPs look at the world again.
    pub(in crate::runtime) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for lwp in 0..self.seats.len() {
            self.wake_slowly(Some(lwp));
        }
    }

    #[cold]
    fn wake_slowly(&self, wanted: Option<usize>) {
        let mut sleepers = self.sleepers();
        let place = match wanted {
            Some(lwp) => sleepers.iter().position(|sleeper| *sleeper == lwp),
            None => sleepers.len().checked_sub(1),
        };
        let Some(place) = place else { return };
        let lwp = sleepers.swap_remove(place);
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        // Rule 4.
        self.searching.fetch_add(1, Ordering::Relaxed);
        drop(sleepers);
        let seat = &self.seats[lwp];
        *seat.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
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

    /// The LWP, which searches, has found nothing: it sleeps until it is woken, unless `is_work` at the last look.
    /// With `patience`, the LWP that goes to sleep last gives up after that time.
    pub(in crate::runtime) fn sleep(
        &self,
        lwp: usize,
        is_work: impl Fn() -> bool,
        patience: Option<std::time::Duration>,
    ) -> Woke {
        let mut sleepers = self.sleepers();
        sleepers.push(lwp);
        let all_asleep = sleepers.len() == self.seats.len();
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
        drop(sleepers);
        self.searching.fetch_sub(1, Ordering::Relaxed);
        // Rule 2.
        self.fences.heavy();
        if is_work() && self.leave_list(lwp) {
            self.searching.fetch_add(1, Ordering::Relaxed);
            return Woke::Search;
        }
        let seat = &self.seats[lwp];
        let mut woken = seat.woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *woken) {
            let Some(patience) = patience.filter(|_| all_asleep) else {
                woken = seat.wakes.wait(woken).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            woken = seat.wakes.wait_timeout(woken, patience).unwrap_or_else(PoisonError::into_inner).0;
            if !*woken && self.asleep.load(Ordering::Relaxed) == self.seats.len() && self.leave_list(lwp) {
                self.searching.fetch_add(1, Ordering::Relaxed);
                return Woke::AllAsleep;
            }
        }
        Woke::Search
    }

    /// Rule 5: takes `lwp` off the list, if it is there.
    fn leave_list(&self, lwp: usize) -> bool {
        let mut sleepers = self.sleepers();
        let Some(place) = sleepers.iter().position(|sleeper| *sleeper == lwp) else { return false };
        sleepers.swap_remove(place);
        self.asleep.store(sleepers.len(), Ordering::Relaxed);
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
}
