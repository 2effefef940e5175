//! Parking for programs: `std::thread::park` for both user threads and plain ones.
//!
//! 1. The permit is a separate token: waits for other things neither consume nor set it.
//! 2. `unpark` sets the permit, and then unparks the thread. Parking takes the permit; if there is none, it parks and
//!    then looks again. The unpark orders the two sides, as it does for an answer (rule 6 of `sync/mod.rs`).

use std::{
    fmt,
    time::{Duration, Instant},
};

use sigmund_model::Thread;

use super::{
    park::{checkpoint, yield_now},
    parker::Parker,
    thread::ThreadRef,
    waits::{WaitKind, WaitsFor},
};

/// Ends the [`park`](crate::park) of one thread. Copies unpark the same thread.
///
/// It may outlive the thread. Then unparking has no effect, or wakes a later thread spuriously.
#[derive(Clone, Copy)]
pub struct Unparker {
    parker: Parker,
    /// `None` for a plain thread.
    id: Option<Thread>,
}

/// The [`Unparker`] of the calling thread.
pub fn unparker() -> Unparker {
    match Parker::here() {
        Parker::User(thread) => Unparker::of(thread),
        parker => Unparker { parker, id: None },
    }
}

/// Blocks the calling thread until its [`Unparker`] is used, like `std::thread::park`. Returns at once if the unparker
/// was used since the last return from this function. The caller has to check its condition again: it may be woken
/// spuriously.
///
/// Meanwhile, the LWP of a user thread runs other threads; a plain thread is blocked. Waiting for something else, such
/// as a lock, does not consume the token.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// static DONE: AtomicBool = AtomicBool::new(false);
///
/// let runtime = fut::Runtime::builder().lwps(2).build()?;
/// runtime.run(|| {
///     let main = fut::unparker();
///     let worker = fut::spawn(move || {
///         DONE.store(true, Ordering::Release);
///         main.unpark();
///     });
///     while !DONE.load(Ordering::Acquire) {
///         fut::park();
///     }
///     worker.join().unwrap();
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn park_current() {
    wait_for_permit(None);
}

/// Like [`park`](crate::park), at most for `timeout`.
pub fn park_timeout(timeout: Duration) {
    // A deadline beyond the range of the clock means none.
    wait_for_permit(Instant::now().checked_add(timeout));
}

fn wait_for_permit(deadline: Option<Instant>) {
    checkpoint();
    let here = Parker::here();
    let on = WaitsFor { kind: WaitKind::Park, address: 0, holder: None, is_fed: false };
    let mut has_left = false;
    while !here.permit().take() {
        match deadline {
            None => here.park(&on),
            Some(deadline) if Instant::now() < deadline => here.park_until(&on, deadline),
            Some(_) if has_left => return,
            // As in the waits of `sync`, a limit of 0 still lets others run.
            Some(_) => yield_now(),
        }
        has_left = true;
    }
}

impl Unparker {
    pub(super) fn of(thread: ThreadRef) -> Unparker {
        Unparker { parker: Parker::User(thread), id: Some(thread.id()) }
    }

    /// Makes the thread's [`park`](crate::park) return, or the next one if it is not parked. Any thread may call this.
    pub fn unpark(&self) {
        if let (Parker::User(thread), Some(id)) = (self.parker, self.id)
            && thread.id() != id
        {
            return;
        }
        self.parker.permit().give(|| self.parker.unpark());
    }

    /// The number of the user thread; `None` for a plain thread.
    pub fn id(&self) -> Option<Thread> {
        self.id
    }
}

impl fmt::Debug for Unparker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unparker").field("id", &self.id).finish_non_exhaustive()
    }
}
