//! Numbers of user threads. They are unique in a process, even with several runtimes; 0 means no thread.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering},
};

use sigmund_model::Thread;

/// How many numbers an LWP takes at a time, so that it rarely writes to the shared word.
const BATCH: u64 = 256;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The numbers reserved by an LWP.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Ids {
    next: Cell<u64>,
    left: Cell<u64>,
}

impl Ids {
    pub(in crate::runtime) fn next(&self) -> Thread {
        if self.left.get() == 0 {
            self.next.set(NEXT.fetch_add(BATCH, Ordering::Relaxed));
            self.left.set(BATCH);
        }
        self.left.set(self.left.get() - 1);
        Thread(self.next.replace(self.next.get() + 1))
    }

    /// The number of a thread that is not created on an LWP.
    pub(in crate::runtime) fn next_outside() -> Thread {
        Thread(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
