//! What a running user thread can do with itself: yield, block, get its id.

use std::time::{Duration, Instant};

use sigmund_model::Thread;

use super::{
    lwp,
    thread::{Leave, ThreadRef},
    waits::{WaitKind, WaitsFor},
};

/// The user thread that calls this, if it is one.
#[inline]
pub(crate) fn try_here() -> Option<ThreadRef> {
    lwp::mounted()
}

/// The user thread that calls this.
///
/// # Panics
/// Outside of a runtime; the message names `call`.
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
    panic!(
        "{call} was called outside of a runtime: only a user thread can block there; see fut::Runtime::run"
    )
}

/// The number of the user thread that calls this; `None` outside of a runtime.
pub fn current() -> Option<Thread> {
    try_here().map(ThreadRef::id)
}

/// Lets other ready threads run first. Outside of a runtime, yields the LWP to the kernel.
#[inline]
pub fn yield_now() {
    match try_here() {
        Some(thread) => thread.leave(Leave::Yield),
        None => std::thread::yield_now(),
    }
}

/// A safe point: if the quantum of the calling user thread is over and others are ready, they run first. A call costs
/// two loads and a branch, so that a loop can afford it in each of its rounds. Does nothing outside of a runtime.
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

/// Blocks the calling user thread for at least this time.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn sleep(duration: Duration) {
    let thread = here("fut::sleep");
    // Longer than the clock can say is for ever, as good as.
    let Some(deadline) = Instant::now().checked_add(duration) else {
        return sleep(Duration::from_secs(1 << 30));
    };
    let on = WaitsFor { kind: WaitKind::Sleep, address: 0, holder: None };
    while Instant::now() < deadline {
        thread.park_until(&on, deadline);
    }
}

/// Blocks the calling user thread until it is unparked. May return without that: the caller checks its condition
/// again. An unpark that came before makes it return at once.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub(crate) fn park(on: &WaitsFor<'_>) {
    let thread = here("fut::park");
    if thread.take_token() {
        return;
    }
    thread.waits().set(on, false);
    thread.leave(Leave::Park);
}

/// The same, and also returns at the deadline.
#[track_caller]
pub(crate) fn park_until(on: &WaitsFor<'_>, deadline: Instant) {
    here("fut::park_until").park_until(on, deadline);
}

impl ThreadRef {
    fn park_until(self, on: &WaitsFor<'_>, deadline: Instant) {
        if self.take_token() {
            return;
        }
        self.waits().set(on, true);
        let shared = self.shared();
        let timer = shared.reactor.add_timer(deadline, self);
        self.leave(Leave::Park);
        shared.reactor.remove_timer(timer);
    }
}
