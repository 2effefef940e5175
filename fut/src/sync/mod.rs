//! Synchronisation of user threads. A wait blocks the user thread, but not its LWP.
//!
//! Names and semantics are those of three libraries: std ([`Mutex`], [`RwLock`], [`Condvar`], [`Barrier`],
//! [`LazyLock`], [`OnceCell`] as `OnceLock`), tokio ([`Semaphore`], [`Notify`], [`oneshot`], [`watch`], [`broadcast`],
//! [`CancellationToken`]) and crossbeam ([`channel`]). For operations that these do not have (time limits, guards of a
//! part), the names are those of parking_lot (`try_lock_for`, `MutexGuard::map`). Nothing is poisoned by a panic.
//!
//! Plain threads, outside a runtime, may use all of it, also together with user threads. A call that has to wait then
//! blocks the kernel thread.
//!
//! # How waiting works
//!
//! These are the rules of all primitives; each file adds its own:
//!
//! 1. Waiters are in a queue, as nodes on their own stacks. The queue is guarded by a spin lock. While it is held,
//!    nothing is allocated, no code of the program runs, and no thread is unparked.
//! 2. A waker removes a waiter from the queue under that lock, and stores its answer there. This is the waker's last
//!    access to the waiter: after that the node may no longer exist.
//! 3. The waker copies the handle of the thread to unpark before that, and unparks the thread after it has released the
//!    lock. An unpark may be late, when the thread has already seen its answer. Then the next wait of the thread wakes
//!    spuriously, and waits again.
//! 4. At its deadline a waiter checks the queue, under the lock. If it is still queued, it removes itself: it has timed
//!    out. If it is not, it was answered, and the answer counts.
//! 5. The runtime never frees or unwinds the stack of a waiting thread, even if the runtime is dropped before the
//!    thread has ended. So the node of the thread stays valid. Dropping a node while it is in a queue aborts the
//!    process.
//! 6. The runtime orders the store of an answer before the load in `unpark`, and taking the token before reading the
//!    answer. (For a plain thread, the lock of its token does so.) The word of the token changes by read-modify-write.
//!    So at least one of the two sides sees the other.
//! 7. If the thread of a waiter never runs again, because its runtime was dropped, the waiter is removed from its queue
//!    on its behalf (`runtime/left_behind.rs`), under the lock of the queue. If it was answered before, the answer is
//!    undone or passed on to the next waiter: a lock is unlocked, permits are given back, a notification goes to
//!    another thread. A value that it has received is lost. But the thread keeps what it had before it began to wait:
//!    locks stay locked, its ends of channels stay connected.

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

/// The deadline; `None` if it is beyond the range of the clock, which means no deadline.
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
