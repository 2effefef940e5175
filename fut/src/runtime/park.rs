//! Operations of the calling user thread on itself: yield, block, get its id.

use std::time::{Duration, Instant};

use sigmund_model::Thread;

use super::{
    lwp,
    thread::{Leave, ThreadRef},
    waits::{WaitKind, WaitsFor},
};

/// The calling user thread; `None` outside a user thread.
#[inline]
pub(crate) fn try_here() -> Option<ThreadRef> {
    lwp::mounted()
}

/// The calling user thread. `call` is the name of the function that needs it.
///
/// # Panics
/// Outside a runtime; the message names `call`.
#[inline]
#[track_caller]
pub(crate) fn here(call: &'static str) -> ThreadRef {
    match lwp::mounted() {
        Some(thread) => thread,
        None => outside(call),
    }
}

#[cold]
#[track_caller]
fn outside(call: &'static str) -> ! {
    panic!("{call} was called outside a runtime: expected a user thread as the caller; see fut::Runtime::run")
}

/// The number of the calling user thread; `None` outside a runtime.
pub fn current() -> Option<Thread> {
    try_here().map(ThreadRef::id)
}

/// Lets other ready threads run first. Outside a runtime, calls `sched_yield`.
#[inline]
pub fn yield_now() {
    match try_here() {
        Some(thread) => thread.leave(Leave::Yield),
        None => std::thread::yield_now(),
    }
}

/// A safe point: if the quantum of the calling user thread is over and others are ready, they run first. A call costs
/// two loads and a branch, which is cheap enough for every iteration of a loop. Does nothing outside a runtime.
#[inline]
pub fn checkpoint() {
    if lwp::is_preempted() {
        leave_at_quantum();
    }
}

#[cold]
fn leave_at_quantum() {
    if let Some(thread) = try_here() {
        thread.leave(Leave::Quantum);
    }
}

/// Blocks the calling user thread for at least this time. If the time is zero, the thread yields.
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub fn sleep(duration: Duration) {
    let thread = here("fut::sleep");
    if duration.is_zero() {
        return yield_now();
    }
    // A deadline beyond the range of the clock means for ever.
    let Some(deadline) = Instant::now().checked_add(duration) else {
        return sleep(Duration::from_secs(1 << 30));
    };
    let mut left = duration;
    while !left.is_zero() {
        // For readers of the trace: time after this deadline is not sleep.
        let asked = usize::try_from(left.as_nanos()).unwrap_or(usize::MAX);
        let on = WaitsFor { kind: WaitKind::Sleep, address: asked, holder: None, is_fed: false };
        if thread.is_over_after_park(&on, deadline) {
            return;
        }
        left = deadline.saturating_duration_since(Instant::now());
    }
}

/// Blocks the calling user thread until it is unparked. May return spuriously: the caller has to check its condition
/// again. If it was unparked before, it returns at once.
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub(crate) fn park(on: &WaitsFor<'_>) {
    here("fut::park").park_here(on);
}

/// Like [`park`], and also returns at the deadline.
#[track_caller]
pub(crate) fn park_until(on: &WaitsFor<'_>, deadline: Instant) {
    here("fut::park_until").park_until(on, deadline);
}

/// Operations of the thread itself.
impl ThreadRef {
    /// Like [`park`].
    pub(super) fn park_here(self, on: &WaitsFor<'_>) {
        if self.take_token() {
            return;
        }
        self.waits().set(on, false);
        self.leave(Leave::Park);
    }

    /// Like [`park_until`].
    pub(super) fn park_until(self, on: &WaitsFor<'_>, deadline: Instant) {
        let _ = self.is_over_after_park(on, deadline);
    }

    /// Like [`park_until`]. Returns whether the deadline is known to have passed, without reading the clock.
    fn is_over_after_park(self, on: &WaitsFor<'_>, deadline: Instant) -> bool {
        if self.take_token() {
            return false;
        }
        self.waits().set(on, true);
        let shared = self.shared();
        let timer = shared.reactor.add_timer(deadline, self);
        self.leave(Leave::Park);
        shared.reactor.remove_timer(timer)
    }
}
