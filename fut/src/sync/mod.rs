//! Synchronisation of user threads: it blocks the user thread, and not the LWP.
//!
//! Names and semantics are those of std ([`Mutex`], [`RwLock`], [`Condvar`], [`Barrier`], [`LazyLock`], [`OnceCell`] as
//! `OnceLock`), of tokio ([`Semaphore`], [`Notify`], [`oneshot`], [`watch`], [`broadcast`], [`CancellationToken`]) and of
//! crossbeam ([`channel`]); what they do not have, a time limit or a guard of a part, has parking_lot's name (`try_lock_for`,
//! `MutexGuard::map`). Nothing is poisoned by a panic.
//!
//! Plain threads, outside a runtime, may use all of it, also together with user threads: a call that has to wait blocks
//! the kernel thread there.
//!
//! # How waiting works
//!
//! Rules of all primitives; each file adds its own:
//!
//! 1. Waiters are in a queue, as nodes on their own stacks. The queue is guarded by a spin lock. Under it, nothing is
//!    allocated, no code of the program runs, and no thread is unparked.
//! 2. A waiter is removed from the queue under that lock, and given its answer there. The answer is the waker's last
//!    access to it: after that the node may no longer exist.
//! 3. The handle of the thread to unpark is copied before that, and the thread is unparked after the lock is released.
//!    An unpark may be late, when the thread has already seen its answer; then its next wait wakes spuriously, and
//!    waits again.
//! 4. At its deadline a waiter checks the queue, under the lock. If it is still queued, it removes itself: it has timed
//!    out. If not, it was answered, and the answer counts.
//! 5. The runtime never frees or unwinds the stack of a waiting thread, even if the runtime is dropped before the
//!    thread has ended: its node stays valid. Dropping a node while it is in a queue aborts the process.
//! 6. The runtime (for a plain thread: the lock of its token) orders the store of an answer before the load in `unpark`, and taking the token before reading the
//!    answer (its word changes by read-modify-write): at least one of the two sides sees the other.
//! 7. A waiter whose thread never runs again, because its runtime was dropped, is removed from its queue on its behalf
//!    (`runtime/left_behind.rs`), under the lock of the queue. If it was answered before, the answer is undone or passed on
//!    to the next waiter: a lock is unlocked, permits are given back, a notification goes to another thread. A value that
//!    it has received is lost with it. What the thread had before it began to wait, it keeps: locks stay locked, its ends
//!    of channels stay connected.

mod barrier;
mod block_on;
pub mod broadcast;
mod cancellation;
pub mod channel;
mod condvar;
mod lazy_lock;
mod lock_events;
#[cfg(loom)]
mod model;
mod mutex;
mod notify;
mod once_cell;
pub mod oneshot;
mod rwlock;
mod semaphore;
mod spin_lock;
mod wait_list;
pub mod watch;

use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    time::{Duration, Instant},
};

#[cfg(not(loom))]
use crate::runtime as rt;
#[cfg(loom)]
use model::runtime as rt;

pub use barrier::{Barrier, BarrierWaitResult};
pub use block_on::block_on;
pub use cancellation::{CancellationToken, DropGuard};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use lazy_lock::LazyLock;
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::Notify;
pub use once_cell::OnceCell;
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError};

/// `None` if it is beyond the range of the clock, which means no deadline.
fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

// A panic cannot leave these in an inconsistent state: no code of the program runs while they change.
impl UnwindSafe for Barrier {}
impl RefUnwindSafe for Barrier {}
impl UnwindSafe for Condvar {}
impl RefUnwindSafe for Condvar {}
impl UnwindSafe for Notify {}
impl RefUnwindSafe for Notify {}
impl<T> UnwindSafe for oneshot::Sender<T> {}
impl<T> RefUnwindSafe for oneshot::Sender<T> {}
impl<T> UnwindSafe for oneshot::Receiver<T> {}
impl<T> RefUnwindSafe for oneshot::Receiver<T> {}
impl<T> UnwindSafe for broadcast::Sender<T> {}
impl<T> RefUnwindSafe for broadcast::Sender<T> {}
impl<T> UnwindSafe for broadcast::Receiver<T> {}
impl<T> RefUnwindSafe for broadcast::Receiver<T> {}
impl UnwindSafe for Semaphore {}
impl RefUnwindSafe for Semaphore {}
impl<T> UnwindSafe for channel::Sender<T> {}
impl<T> RefUnwindSafe for channel::Sender<T> {}
impl<T> UnwindSafe for channel::Receiver<T> {}
impl<T> RefUnwindSafe for channel::Receiver<T> {}
impl<T: UnwindSafe> UnwindSafe for OnceCell<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceCell<T> {}
