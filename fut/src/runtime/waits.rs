//! What a blocked user thread waits for: for the trace, for inspecting a live program, and for reporting a deadlock.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use sigmund_model::Thread;
pub use sigmund_model::WaitKind;

/// What the calling thread is about to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitsFor<'a> {
    pub(crate) kind: WaitKind,
    /// Address of the object. For `Join` the number of the thread, for `Io` that of the descriptor, for `Scope` of the
    /// team.
    pub(crate) address: usize,
    /// The word with the number of the user thread that holds the object, 0 if none; `None` if the object cannot be
    /// held.
    pub(crate) holder: Option<&'a AtomicU64>,
}

/// What a thread waits for, in its block.
#[derive(Debug)]
pub(super) struct WaitSlot {
    kind: AtomicU8,
    /// Whether a deadline ends the wait.
    timed: AtomicU8,
    address: AtomicUsize,
    holder: AtomicPtr<AtomicU64>,
    /// The holder when the thread began to wait.
    held_by: AtomicU64,
}

impl WaitSlot {
    pub(super) const fn new() -> WaitSlot {
        WaitSlot {
            kind: AtomicU8::new(0),
            timed: AtomicU8::new(0),
            address: AtomicUsize::new(0),
            holder: AtomicPtr::new(std::ptr::null_mut()),
            held_by: AtomicU64::new(0),
        }
    }

    /// Called by the thread itself, before it blocks.
    pub(super) fn set(&self, on: &WaitsFor<'_>, timed: bool) {
        let holder = on.holder.map_or(std::ptr::null(), std::ptr::from_ref);
        self.kind.store(on.kind.number(), Ordering::Relaxed);
        self.timed.store(u8::from(timed), Ordering::Relaxed);
        self.address.store(on.address, Ordering::Relaxed);
        self.holder.store(holder.cast_mut(), Ordering::Relaxed);
        let held_by = on.holder.map_or(0, |holder| holder.load(Ordering::Relaxed));
        self.held_by.store(held_by, Ordering::Relaxed);
    }

    pub(super) fn kind(&self) -> Option<WaitKind> {
        WaitKind::from_number(self.kind.load(Ordering::Relaxed).into())
    }

    pub(super) fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed) != 0
    }

    pub(super) fn address(&self) -> usize {
        self.address.load(Ordering::Relaxed)
    }

    /// The number of the thread that held it when this one began to wait.
    pub(super) fn held_by(&self) -> Option<Thread> {
        let id = self.held_by.load(Ordering::Relaxed);
        (id != 0).then_some(Thread(id))
    }

    /// The number of the thread that now holds the object.
    ///
    /// # Safety
    /// The thread is blocked on it, and stays so during the call, so that its stack borrows the object.
    pub(super) unsafe fn holder(&self) -> Option<u64> {
        let holder = self.holder.load(Ordering::Relaxed);
        // SAFETY: the caller guarantees it.
        let id = unsafe { holder.as_ref() }?.load(Ordering::Relaxed);
        (id != 0).then_some(id)
    }
}
