//! Synchronisation of user threads: it blocks the user thread, and not the LWP.
//!
//! Names and meanings are those of std ([`Mutex`], [`RwLock`], [`Condvar`], [`Barrier`], [`OnceCell`] as `OnceLock`),
//! of tokio ([`Semaphore`]) and of crossbeam ([`channel`]); where they have no form with a time limit, the name is
//! parking_lot's (`try_lock_for`). Nothing is poisoned by a panic.
//!
//! A plain thread, outside of a runtime, may call what does not have to wait: `try_lock`, `send` to an unbounded
//! channel, `notify_one`, `add_permits`, also `lock` of a mutex that is not held. A call that would have to wait panics
//! there, with its name.
//!
//! # How they wait
//!
//! Rules of all primitives; each file adds its own:
//!
//! 1. Waiters are in a queue, as nodes on their own stacks. The queue is guarded by a lock that spins. Under it,
//!    nothing is allocated, no code of users runs, and no thread is unparked.
//! 2. A waiter is removed from the queue under that lock, and given its answer there. The answer is the last that the
//!    waker touches of it: with it the node may be gone.
//! 3. The handle of the thread to unpark is copied before, and the thread is unparked after the lock is free. An unpark
//!    may be late, when the thread has seen its answer already; then its next wait wakes spuriously, and waits again.
//! 4. At its deadline a waiter asks the queue, under the lock. If it is still in it, it removes itself: it has timed
//!    out, and nothing of it is left. If not, it was answered, and the answer counts.
//! 5. The runtime keeps the stack of a thread that waits, also when it is dropped before that thread has ended, and
//!    does not unwind it: its node may be in a queue for ever. A node that would leave while it is in a queue aborts
//!    the process.
//! 6. Between the store of an answer and what `unpark` reads, and between taking the token and reading the answer,
//!    the runtime orders (its word changes by read-modify-write): one of the two sides sees the other.

mod barrier;
pub mod channel;
mod condvar;
mod lock_events;
#[cfg(loom)]
mod model;
mod mutex;
mod once_cell;
mod rwlock;
mod semaphore;
mod spin_lock;
mod wait_list;

use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    time::{Duration, Instant},
};

#[cfg(not(loom))]
use crate::runtime as rt;
#[cfg(loom)]
use model::runtime as rt;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use once_cell::OnceCell;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError};

/// `None`: it is later than the clock can represent, so never.
fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

// A panic cannot leave these in the middle of something: no code of users runs while they change.
impl UnwindSafe for Barrier {}
impl RefUnwindSafe for Barrier {}
impl UnwindSafe for Condvar {}
impl RefUnwindSafe for Condvar {}
impl UnwindSafe for Semaphore {}
impl RefUnwindSafe for Semaphore {}
impl<T> UnwindSafe for channel::Sender<T> {}
impl<T> RefUnwindSafe for channel::Sender<T> {}
impl<T> UnwindSafe for channel::Receiver<T> {}
impl<T> RefUnwindSafe for channel::Receiver<T> {}
impl<T: UnwindSafe> UnwindSafe for OnceCell<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceCell<T> {}
