//! What a blocked user thread waits for: for the trace, for who looks at a live program, and for telling a deadlock.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use sigmund_model::Thread;

/// The kinds of things that block a user thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum WaitKind {
    /// A [`Mutex`](crate::sync::Mutex) that another holds.
    Mutex = 1,
    /// An `RwLock` that a writer holds.
    RwLockRead = 2,
    /// An `RwLock` that others hold.
    RwLockWrite = 3,
    /// A condition variable.
    Condvar = 4,
    /// Permits of a semaphore.
    Semaphore = 5,
    /// The others at a barrier.
    Barrier = 6,
    /// A message in a channel.
    Channel = 7,
    /// Room in a channel.
    ChannelSpace = 8,
    /// The value of a once cell, which another computes.
    OnceCell = 9,
    /// The end of another user thread.
    Join = 10,
    /// A point in time.
    Sleep = 11,
    /// A file descriptor that is ready.
    Io = 12,
    /// The end of all user threads of a scope.
    Scope = 13,
}

impl WaitKind {
    const ALL: [WaitKind; 13] = [
        WaitKind::Mutex,
        WaitKind::RwLockRead,
        WaitKind::RwLockWrite,
        WaitKind::Condvar,
        WaitKind::Semaphore,
        WaitKind::Barrier,
        WaitKind::Channel,
        WaitKind::ChannelSpace,
        WaitKind::OnceCell,
        WaitKind::Join,
        WaitKind::Sleep,
        WaitKind::Io,
        WaitKind::Scope,
    ];

    /// For people: `mutex`, `room in a channel`.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Mutex => "mutex",
            WaitKind::RwLockRead => "rwlock (read)",
            WaitKind::RwLockWrite => "rwlock (write)",
            WaitKind::Condvar => "condvar",
            WaitKind::Semaphore => "semaphore",
            WaitKind::Barrier => "barrier",
            WaitKind::Channel => "channel",
            WaitKind::ChannelSpace => "room in a channel",
            WaitKind::OnceCell => "once cell",
            WaitKind::Join => "end of thread",
            WaitKind::Sleep => "time",
            WaitKind::Io => "file descriptor",
            WaitKind::Scope => "threads of a scope",
        }
    }
}

/// What the calling thread is about to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitsFor<'a> {
    pub(crate) kind: WaitKind,
    /// Where the thing is. For `Join` the number of the thread, for `Io` that of the descriptor.
    pub(crate) address: usize,
    /// Where the number of the user thread that holds it stands, if somebody can hold it; 0 is nobody.
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
    /// What stood there when the thread began to wait.
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

    /// By the thread itself, before it blocks.
    pub(super) fn set(&self, on: &WaitsFor<'_>, timed: bool) {
        let holder = on.holder.map_or(std::ptr::null(), std::ptr::from_ref);
        self.kind.store(on.kind as u8, Ordering::Relaxed);
        self.timed.store(u8::from(timed), Ordering::Relaxed);
        self.address.store(on.address, Ordering::Relaxed);
        self.holder.store(holder.cast_mut(), Ordering::Relaxed);
        let held_by = on.holder.map_or(0, |holder| holder.load(Ordering::Relaxed));
        self.held_by.store(held_by, Ordering::Relaxed);
    }

    pub(super) fn kind(&self) -> Option<WaitKind> {
        let number = self.kind.load(Ordering::Relaxed);
        WaitKind::ALL.into_iter().find(|kind| *kind as u8 == number)
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

    /// The number of the thread that holds what is waited for.
    ///
    /// # Safety
    /// The thread is blocked on it, and stays so during the call: what it waits for is borrowed by its stack.
    pub(super) unsafe fn holder(&self) -> Option<u64> {
        let holder = self.holder.load(Ordering::Relaxed);
        // SAFETY: as the caller vouches.
        let id = unsafe { holder.as_ref() }?.load(Ordering::Relaxed);
        (id != 0).then_some(id)
    }
}
