//! The latest value of something, watched by many receivers, like tokio's.
//!
//! 1. The version grows with each change, under the write lock of the value. So a receiver that reads the version under
//!    the read lock gets the version of the value that it sees.
//! 2. A receiver waits while the version is the one that it has seen. It checks the version under the lock of the
//!    queue. A change takes this lock after it has written the value. So a waiter that queues earlier is woken, and one
//!    that comes later sees the new version.
//!
//! ```
//! # let runtime = fut::Runtime::builder().lwps(2).build()?;
//! # runtime.run(|| {
//! use fut::sync::watch;
//!
//! let (limit, mut limits) = watch::channel(10);
//! let watcher = fut::spawn(move || {
//!     while limits.changed().is_ok() {}
//!     *limits.borrow()
//! });
//! limit.send(20).unwrap();
//! limit.send(30).unwrap();
//! drop(limit);
//! assert_eq!(watcher.join().unwrap(), 30);
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

use std::{
    fmt,
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

pub use super::channel::{RecvError, RecvTimeoutError, SendError};
use super::{
    RwLock, RwLockReadGuard, deadline_after,
    rt::{MadeIn, Parker, WaitKind, WaitsFor, checkpoint},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, answer_all, wait_or_leave},
};

/// Changes the value. Clones change the same value.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// Reads the value, and waits for changes. Each clone remembers which version it has seen.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

/// Read access to the value. As long as it exists, the value cannot be changed: senders wait.
#[must_use = "the value is read through this"]
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, T>,
    has_changed: bool,
}

struct Shared<T> {
    value: RwLock<T>,
    state: SpinLock<State>,
    /// Where it was made: a thread outside of the runtime that has made it may well keep one of its ends.
    made_in: MadeIn,
}

struct State {
    version: u64,
    senders: usize,
    receivers: usize,
    /// Receivers that wait for a change. The payload of each is the version that it has seen.
    changed: WaitList<u64>,
    /// Senders that wait until there is no receiver.
    closed: WaitList<()>,
}

/// A watched value. The receiver counts the first value as seen.
pub fn channel<T>(first: T) -> (Sender<T>, Receiver<T>) {
    let state =
        State { version: 0, senders: 1, receivers: 1, changed: WaitList::new(), closed: WaitList::new() };
    let shared =
        Arc::new(Shared { value: RwLock::new(first), state: SpinLock::new(state), made_in: MadeIn::here() });
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared, seen: 0 })
}

impl<T> Sender<T> {
    /// Replaces the value, and wakes the receivers.
    ///
    /// # Errors
    /// Returns the new value if there is no receiver. The old value stays.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        drop(self.send_replace(value));
        Ok(())
    }

    /// Replaces the value, even if there is no receiver. Returns the old value.
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|old| std::mem::swap(old, &mut value));
        value
    }

    /// Changes the value in place, and wakes the receivers.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value in place. Returns what `modify` returns, and wakes the receivers if that is `true`. If
    /// `modify` panics, no receiver is woken.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let mut value = self.shared.value.write();
        if !modify(&mut value) {
            return false;
        }
        // Rule 1.
        let version = {
            let mut state = self.shared.state.lock();
            state.version += 1;
            state.version
        };
        drop(value);
        answer_all(&self.shared.state, |state| &mut state.changed, Answer::TryAgain, |seen| *seen < version);
        true
    }

    /// The value.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref { value: self.shared.value.read(), has_changed: false }
    }

    /// A new receiver, for which the current value counts as seen.
    pub fn subscribe(&self) -> Receiver<T> {
        let mut state = self.shared.state.lock();
        state.receivers += 1;
        let seen = state.version;
        drop(state);
        Receiver { shared: Arc::clone(&self.shared), seen }
    }

    /// Number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.shared.state.lock().receivers
    }

    /// Whether there is no receiver.
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver.
    pub fn closed(&self) {
        checkpoint();
        let waiter = Waiter::new(Parker::here(), ());
        let mut state = self.shared.state.lock();
        if state.receivers == 0 {
            return;
        }
        // SAFETY: the waiter is not moved; this function returns after it was answered.
        unsafe { state.closed.push_back(&waiter) };
        drop(state);
        // As for `OnceCell`, a waiter that never runs again blocks no other.
        let _closed = waiter.wait(&self.shared.waits_for(), None, &|| {});
    }
}

impl<T> Receiver<T> {
    /// The value. This does not count as having seen it.
    pub fn borrow(&self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        let has_changed = self.shared.state.lock().version != self.seen;
        Ref { value, has_changed }
    }

    /// The value, which counts as seen from now on.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        let version = self.shared.state.lock().version;
        let has_changed = std::mem::replace(&mut self.seen, version) != version;
        Ref { value, has_changed }
    }

    /// Whether the value has changed since it was seen.
    ///
    /// # Errors
    /// If there is no sender any more.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let state = self.shared.state.lock();
        if state.senders == 0 { Err(RecvError) } else { Ok(state.version != self.seen) }
    }

    /// Waits until the value has changed since it was seen. Then the change counts as seen.
    ///
    /// # Errors
    /// If the value has not changed and there is no sender any more.
    pub fn changed(&mut self) -> Result<(), RecvError> {
        self.shared.changed(&mut self.seen, None).map_err(|_| RecvError)
    }

    /// Like [`changed`](Receiver::changed), but waits at most for `timeout`.
    ///
    /// # Errors
    /// If the value did not change in time; otherwise as for [`changed`](Receiver::changed).
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<(), RecvTimeoutError> {
        self.shared.changed(&mut self.seen, deadline_after(timeout))
    }

    /// Waits until the condition holds for the value. Then the value counts as seen.
    ///
    /// # Errors
    /// If the condition does not hold and there is no sender any more.
    pub fn wait_for(&mut self, mut condition: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, RecvError> {
        let Receiver { shared, seen } = self;
        let shared = &**shared;
        loop {
            let value = shared.value.read();
            let version = shared.state.lock().version;
            let has_changed = std::mem::replace(seen, version) != version;
            if condition(&value) {
                return Ok(Ref { value, has_changed });
            }
            drop(value);
            shared.changed(seen, None).map_err(|_| RecvError)?;
        }
    }

    /// Whether both watch the same value.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Shared<T> {
    /// Waits until the version is not `seen`, and stores the new version there.
    fn changed(&self, seen: &mut u64, deadline: Option<Instant>) -> Result<(), RecvTimeoutError> {
        checkpoint();
        let mut waiter = Waiter::new(Parker::here(), 0);
        loop {
            let mut state = self.state.lock();
            if state.version != *seen {
                *seen = state.version;
                return Ok(());
            }
            if state.senders == 0 {
                return Err(RecvTimeoutError::Disconnected);
            }
            *waiter.payload() = *seen;
            // SAFETY: the waiter is not moved. It is pushed again, or this function returns, only after it was answered
            // or has left the list.
            unsafe { state.changed.push_back(&waiter) };
            drop(state);
            let on = self.waits_for();
            if wait_or_leave(&self.state, |state| &mut state.changed, &waiter, &on, deadline).is_none() {
                return Err(RecvTimeoutError::Timeout);
            }
        }
    }

    fn waits_for(&self) -> WaitsFor<'_> {
        let address = std::ptr::from_ref(self).addr();
        WaitsFor { kind: WaitKind::Channel, address, holder: None, is_fed: self.made_in.is_elsewhere() }
    }
}

impl<T> Ref<'_, T> {
    /// Whether the receiver had not seen this value before.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.shared.state.lock().senders += 1;
        Sender { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.shared.state.lock().receivers += 1;
        Receiver { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.senders -= 1;
        let is_last = state.senders == 0;
        drop(state);
        if is_last {
            answer_all(&self.shared.state, |state| &mut state.changed, Answer::TryAgain, |_| true);
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.receivers -= 1;
        let is_last = state.receivers == 0;
        drop(state);
        if is_last {
            answer_all(&self.shared.state, |state| &mut state.closed, Answer::Closed, |()| true);
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender { .. }")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
