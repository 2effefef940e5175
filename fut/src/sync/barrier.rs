//! A barrier for user threads: all continue when the last one has arrived.

use std::fmt;

use super::{
    rt::{Parker, WaitKind, WaitsFor},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, Wakeups},
};
use crate::model_check::const_unless_loom;

/// Lets a number of user threads wait for each other, repeatedly, like `std::sync::Barrier` for kernel threads.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use std::sync::Arc;
///
/// use fut::sync::Barrier;
///
/// let barrier = Arc::new(Barrier::new(3));
/// let threads: Vec<_> = (0..3)
///     .map(|_| {
///         let barrier = Arc::clone(&barrier);
///         fut::spawn(move || barrier.wait().is_leader())
///     })
///     .collect();
/// let leaders = threads.into_iter().filter_map(|t| t.join().ok()).filter(|leads| *leads).count();
/// assert_eq!(leaders, 1);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Barrier {
    state: SpinLock<State>,
    needed: usize,
}

#[derive(Debug)]
struct State {
    queue: WaitList<()>,
    /// Number of threads that wait in the current round.
    waiting: usize,
}

/// Whether this thread opened the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// True for one thread of each round: the last to arrive.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    const_unless_loom! {
        /// A barrier for `n` threads; 0 means 1.
        pub fn new(n: usize) -> Barrier {
            Barrier { state: SpinLock::new(State { queue: WaitList::new(), waiting: 0 }), needed: n }
        }
    }

    /// Waits until `n` threads have called this.
    pub fn wait(&self) -> BarrierWaitResult {
        if self.open_if_last() {
            return BarrierWaitResult(true);
        }
        let waiter = Waiter::new(Parker::here(), ());
        let mut state = self.state.lock();
        if state.waiting + 1 >= self.needed {
            // Other threads arrived between the two checks.
            drop(state);
            return self.wait();
        }
        state.waiting += 1;
        // SAFETY: the waiter is not moved; this function returns after it was answered.
        unsafe { state.queue.push_back(&waiter) };
        drop(state);
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind: WaitKind::Barrier, address, holder: None, is_fed: false };
        // A thread that never runs again still counts as arrived.
        let _granted = waiter.wait(&on, None, &|| {});
        BarrierWaitResult(false)
    }

    fn open_if_last(&self) -> bool {
        let mut state = self.state.lock();
        if state.waiting + 1 < self.needed {
            return false;
        }
        let mut to_wake = std::mem::take(&mut state.waiting);
        // The next round may begin and end while the waiters of this round are being woken. Then each of the two wakes
        // as many waiters as its round has, and all waiters of both rounds may continue.
        loop {
            let mut wakeups = Wakeups::new();
            while to_wake > 0 && !wakeups.is_full() {
                wakeups.push(state.queue.pop_front(Answer::Granted));
                to_wake -= 1;
            }
            drop(state);
            wakeups.unpark_all();
            if to_wake == 0 {
                return true;
            }
            state = self.state.lock();
        }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("needed", &self.needed).finish_non_exhaustive()
    }
}
