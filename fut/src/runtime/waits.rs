//! What a blocked user thread waits for. Used for the trace, to inspect a live program, and to report a deadlock.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use sigmund_model::Thread;
pub use sigmund_model::WaitKind;

use super::park::try_here;

/// The value of the word of an object that a plain thread holds. If a user thread holds it, the word has the thread's number.
const PLAIN_THREAD: u64 = u64::MAX;

/// Where an object was made: in a runtime, or by a plain thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(loom, allow(dead_code))]
pub(crate) struct MadeIn(usize);

#[cfg_attr(loom, allow(dead_code))]
impl MadeIn {
    /// In the runtime of the calling thread, if it has one.
    pub(crate) fn here() -> MadeIn {
        MadeIn(try_here().map_or(0, |thread| std::ptr::from_ref(thread.shared()).addr()))
    }

    /// Whether it was not made in the runtime of the calling thread.
    pub(crate) fn is_elsewhere(self) -> bool {
        self.0 == 0 || self != MadeIn::here()
    }
}

/// The value of the word of an object that the calling thread holds.
#[inline]
#[cfg_attr(loom, allow(dead_code))]
pub(crate) fn holder_here() -> u64 {
    try_here().map_or(PLAIN_THREAD, |thread| thread.id().0)
}

/// What the calling thread is about to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitsFor<'a> {
    pub(crate) kind: WaitKind,
    /// Address of the object. For `Join` the number of the thread, for `Io` the number of the descriptor, for `Sleep`
    /// the requested time in nanoseconds, for `Scope` the number of the team.
    pub(crate) address: usize,
    /// The word that identifies the holder of the object: [`holder_here`], or 0 if no thread holds it. `None` if the
    /// object cannot be held.
    pub(crate) holder: Option<&'a AtomicU64>,
    /// A plain thread has made the object, so a plain thread may well unpark the waiter.
    pub(crate) is_fed: bool,
}

/// Takes a thread that never runs again out of the queue in which it waits. Any thread may call it once that is
/// certain.
pub(crate) type LeaveQueue<'a> = &'a (dyn Fn() + 'a);

/// The part of a thread's block that describes what the thread waits for.
#[derive(Debug)]
pub(super) struct WaitSlot {
    kind: AtomicU8,
    /// Whether a deadline ends the wait.
    timed: AtomicU8,
    /// Like [`WaitsFor::is_fed`].
    fed: AtomicU8,
    address: AtomicUsize,
    holder: AtomicPtr<AtomicU64>,
    /// The holder when the thread began to wait.
    held_by: AtomicU64,
    /// While the thread is in a queue: the function that takes it out, which is on its stack. Otherwise null.
    leave: AtomicPtr<LeaveQueue<'static>>,
    /// 1 plus the address of the object for which the thread waited when a thread outside its runtime last unparked it.
    /// 0 if none has.
    fed_at: AtomicUsize,
}

impl WaitSlot {
    pub(super) const fn new() -> WaitSlot {
        WaitSlot {
            kind: AtomicU8::new(0),
            timed: AtomicU8::new(0),
            fed: AtomicU8::new(0),
            address: AtomicUsize::new(0),
            holder: AtomicPtr::new(std::ptr::null_mut()),
            held_by: AtomicU64::new(0),
            leave: AtomicPtr::new(std::ptr::null_mut()),
            fed_at: AtomicUsize::new(0),
        }
    }

    /// Called by the thread itself, before it blocks.
    pub(super) fn set(&self, on: &WaitsFor<'_>, timed: bool) {
        let holder = on.holder.map_or(std::ptr::null(), std::ptr::from_ref);
        self.kind.store(on.kind.number(), Ordering::Relaxed);
        self.timed.store(u8::from(timed), Ordering::Relaxed);
        self.fed.store(u8::from(on.is_fed), Ordering::Relaxed);
        self.address.store(on.address, Ordering::Relaxed);
        self.holder.store(holder.cast_mut(), Ordering::Relaxed);
        let held_by = on.holder.map_or(0, |holder| holder.load(Ordering::Relaxed));
        self.held_by.store(held_by, Ordering::Relaxed);
    }

    /// Called by the thread itself. `leave` must stay valid until the thread calls `leave_queue`.
    pub(super) fn enter_queue<'a>(&self, leave: &'a LeaveQueue<'a>) {
        // Release: pairs with the Acquire in `take_leave`.
        self.leave.store(std::ptr::from_ref(leave).cast_mut().cast(), Ordering::Release);
    }

    /// Called by the thread itself.
    pub(super) fn leave_queue(&self) {
        self.leave.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    /// The function that takes the thread out of its queue, if it is in one. Only the first call returns it.
    ///
    /// # Safety
    /// The thread never runs again, so its stack stays as it is.
    pub(super) unsafe fn take_leave(&self) -> Option<LeaveQueue<'static>> {
        // Acquire: pairs with the Release in `enter_queue`.
        let leave = self.leave.swap(std::ptr::null_mut(), Ordering::Acquire);
        // SAFETY: the pointer is null, or points into the stack of a thread that has not left its queue. The caller
        // guarantees that that thread never runs again, so it never leaves.
        unsafe { leave.as_ref() }.copied()
    }

    pub(super) fn kind(&self) -> Option<WaitKind> {
        WaitKind::from_number(self.kind.load(Ordering::Relaxed).into())
    }

    pub(super) fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed) != 0
    }

    /// Called by the creator of a thread.
    pub(super) fn reset(&self) {
        self.fed_at.store(0, Ordering::Relaxed);
    }

    /// Called by a thread outside the runtime that has just unparked this one.
    pub(super) fn was_fed(&self) {
        self.fed_at.store(self.address().wrapping_add(1), Ordering::Relaxed);
    }

    /// Whether a plain thread, or one of another runtime, may well unpark this thread: such a thread has made the
    /// object for which this one waits, or has unparked this one there before. The second does not count for a lock: a
    /// lock has a word with its holder, and the holder releases it.
    pub(super) fn may_be_fed(&self) -> bool {
        let is_lock = !self.holder.load(Ordering::Relaxed).is_null();
        let was_fed = self.fed_at.load(Ordering::Relaxed) == self.address().wrapping_add(1);
        self.fed.load(Ordering::Relaxed) != 0 || was_fed && !is_lock
    }

    pub(super) fn address(&self) -> usize {
        self.address.load(Ordering::Relaxed)
    }

    /// The number of the thread that held the object when this one began to wait.
    pub(super) fn held_by(&self) -> Option<Thread> {
        let id = self.held_by.load(Ordering::Relaxed);
        (id != 0 && id != PLAIN_THREAD).then_some(Thread(id))
    }

    /// The current holder of the object.
    ///
    /// # Safety
    /// The thread is blocked on the object, and stays so during the call, so that its stack borrows the object.
    pub(super) unsafe fn holder(&self) -> Holder {
        let holder = self.holder.load(Ordering::Relaxed);
        // SAFETY: the caller guarantees it.
        match unsafe { holder.as_ref() }.map_or(0, |holder| holder.load(Ordering::Relaxed)) {
            0 => Holder::NotKnown,
            PLAIN_THREAD => Holder::PlainThread,
            thread => Holder::UserThread(Thread(thread)),
        }
    }
}

/// The holder of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// No thread holds it, several do, or the holder is not recorded.
    NotKnown,
    UserThread(Thread),
    PlainThread,
}
