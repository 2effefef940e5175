//! The receiving side of a broadcast channel.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    super::{
        deadline_after,
        rt::{Parker, WaitKind, WaitsFor, checkpoint},
        wait_list::{Waiter, wait_or_leave},
    },
    RecvError, Shared, TryRecvError,
};

/// Receives each value that is sent while it exists.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The position of the next value to read.
    next: u64,
}

impl<T> Receiver<T> {
    /// Makes a receiver that is already counted. It reads from position `next` on.
    pub(super) fn new(shared: Arc<Shared<T>>, next: u64) -> Receiver<T> {
        Receiver { shared, next }
    }

    pub(super) fn subscribe(shared: Arc<Shared<T>>) -> Receiver<T> {
        let mut state = shared.state.lock();
        state.receivers += 1;
        let next = state.tail;
        drop(state);
        Receiver { shared, next }
    }

    /// A new receiver of the same channel, for the values that are sent from now on.
    pub fn resubscribe(&self) -> Receiver<T> {
        Receiver::subscribe(Arc::clone(&self.shared))
    }

    /// Number of values that were sent and that this receiver has not read, including those that it has lost.
    pub fn len(&self) -> usize {
        (self.shared.state.lock().tail - self.next) as usize
    }

    /// Whether this receiver has read everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T: Clone> Receiver<T> {
    /// Waits for the next value.
    ///
    /// # Errors
    /// [`Lagged`](RecvError::Lagged) if values were overwritten before this receiver read them: then the next call
    /// returns the oldest value that is left. [`Closed`](RecvError::Closed) if it has read everything and all senders
    /// were dropped.
    pub fn recv(&mut self) -> Result<T, RecvError> {
        self.recv_before(None).map_err(|error| match error {
            TryRecvError::Lagged(lost) => RecvError::Lagged(lost),
            TryRecvError::Empty | TryRecvError::Closed => RecvError::Closed,
        })
    }

    /// Like [`recv`](Receiver::recv), but waits at most for `timeout`.
    ///
    /// # Errors
    /// [`Empty`](TryRecvError::Empty) if no value came in time; otherwise as for [`recv`](Receiver::recv).
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, TryRecvError> {
        self.recv_before(deadline_after(timeout))
    }

    /// Receives the next value if there is one.
    ///
    /// # Errors
    /// [`Empty`](TryRecvError::Empty) if there is no value; otherwise as for [`recv`](Receiver::recv).
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let mut state = self.shared.state.lock();
        if self.next == state.tail {
            return Err(if state.senders == 0 { TryRecvError::Closed } else { TryRecvError::Empty });
        }
        let oldest = state.oldest();
        if self.next < oldest {
            let lost = oldest - self.next;
            self.next = oldest;
            return Err(TryRecvError::Lagged(lost));
        }
        let value =
            state.read(self.next).expect("a value in the ring stays until its last receiver reads it");
        self.next += 1;
        drop(state);
        Ok(Arc::try_unwrap(value).unwrap_or_else(|shared| T::clone(&shared)))
    }

    fn recv_before(&mut self, deadline: Option<Instant>) -> Result<T, TryRecvError> {
        checkpoint();
        let mut waiter = Waiter::new(Parker::here(), 0);
        loop {
            match self.try_recv() {
                Err(TryRecvError::Empty) => {}
                received => return received,
            }
            let mut state = self.shared.state.lock();
            if state.tail != self.next || state.senders == 0 {
                continue;
            }
            *waiter.payload() = self.next;
            // SAFETY: the waiter is not moved. It is pushed again, or this function returns, only after it was answered
            // or has left the list.
            unsafe { state.waiting.push_back(&waiter) };
            drop(state);
            let address = Arc::as_ptr(&self.shared).addr();
            let is_fed = self.shared.made_in.is_elsewhere();
            let on = WaitsFor { kind: WaitKind::Channel, address, holder: None, is_fed };
            if wait_or_leave(&self.shared.state, |state| &mut state.waiting, &waiter, &on, deadline).is_none()
            {
                return Err(TryRecvError::Empty);
            }
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.receivers -= 1;
        // Later values do not count this receiver.
        let end = state.tail;
        loop {
            self.next = self.next.max(state.oldest());
            if self.next >= end {
                return;
            }
            let read = state.read(self.next);
            self.next += 1;
            drop(state);
            drop(read);
            state = self.shared.state.lock();
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver { .. }")
    }
}
