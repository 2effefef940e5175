//! A channel for one value, like tokio's.
//!
//! The value and the states of both ends are under one lock. Each end has one owner, so each queue has at most one
//! waiter.
//!
//! ```
//! # let runtime = fut::Runtime::builder().lwps(2).build()?;
//! # runtime.run(|| {
//! use fut::sync::oneshot;
//!
//! let (answer, asked) = oneshot::channel();
//! fut::spawn(move || answer.send(42));
//! assert_eq!(asked.recv(), Ok(42));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

pub use super::channel::{RecvError, RecvTimeoutError, TryRecvError};
use super::{
    deadline_after,
    rt::{MadeIn, Parker, WaitKind, WaitsFor, checkpoint},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, wait_or_leave},
};

/// Sends the value. If it is dropped without sending, the receiver is disconnected.
pub struct Sender<T> {
    state: Arc<SpinLock<State<T>>>,
}

/// Receives the value.
pub struct Receiver<T> {
    state: Arc<SpinLock<State<T>>>,
}

struct State<T> {
    value: Option<T>,
    /// The sender has sent, or was dropped.
    sender_is_done: bool,
    /// The receiver was closed or dropped.
    is_closed: bool,
    /// Where it was made: a thread outside of the runtime that has made it may well keep one of its ends.
    made_in: MadeIn,
    /// The receiver, if it waits for the value.
    receiver: WaitList<()>,
    /// The sender, if it waits until the receiver is closed.
    sender: WaitList<()>,
}

/// A channel for one value.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State {
        value: None,
        sender_is_done: false,
        is_closed: false,
        made_in: MadeIn::here(),
        receiver: WaitList::new(),
        sender: WaitList::new(),
    };
    let state = Arc::new(SpinLock::new(state));
    (Sender { state: Arc::clone(&state) }, Receiver { state })
}

impl<T> Sender<T> {
    /// Sends the value; never waits.
    ///
    /// # Errors
    /// Returns the value if the receiver was closed or dropped.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(value);
        }
        // Dropping the sender, at the end of this function, wakes the receiver.
        state.value = Some(value);
        Ok(())
    }

    /// Whether the receiver was closed or dropped. Then no thread waits for the value.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Waits until the receiver is closed or dropped.
    pub fn closed(&mut self) {
        let _closed = self.closed_before(None);
    }

    /// Like [`closed`](Sender::closed), but waits at most for `timeout`. Returns whether the receiver is closed.
    pub fn closed_timeout(&mut self, timeout: Duration) -> bool {
        self.closed_before(deadline_after(timeout))
    }

    fn closed_before(&self, deadline: Option<Instant>) -> bool {
        checkpoint();
        let waiter = Waiter::new(Parker::here(), ());
        let mut state = self.state.lock();
        if state.is_closed {
            return true;
        }
        // SAFETY: the waiter is not moved; this function returns after it was answered or has left the list.
        unsafe { state.sender.push_back(&waiter) };
        let on = waits_for(&self.state, state.made_in.is_elsewhere());
        drop(state);
        wait_or_leave(&self.state, |state| &mut state.sender, &waiter, &on, deadline).is_some()
    }
}

impl<T> Receiver<T> {
    /// Waits for the value.
    ///
    /// # Errors
    /// If the sender was dropped without sending, or the value was already received.
    pub fn recv(self) -> Result<T, RecvError> {
        self.recv_before(None).map_err(|_| RecvError)
    }

    /// Waits for the value, at most for `timeout`. May be called again.
    ///
    /// # Errors
    /// If the value did not arrive in time; otherwise as for [`recv`](Receiver::recv).
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_before(deadline_after(timeout))
    }

    /// Waits for the value until `deadline`. May be called again.
    ///
    /// # Errors
    /// If the value did not arrive in time; otherwise as for [`recv`](Receiver::recv).
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_before(Some(deadline))
    }

    /// Receives the value if it was sent.
    ///
    /// # Errors
    /// If the value was not sent yet, or never will be.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.state.lock().take()
    }

    /// From now on, sending fails. A value that was sent before can still be received.
    pub fn close(&mut self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let sender = state.sender.pop_front(Answer::Closed);
        drop(state);
        if let Some(sender) = sender {
            sender.unpark();
        }
    }

    fn recv_before(&self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        checkpoint();
        let waiter = Waiter::new(Parker::here(), ());
        let mut state = self.state.lock();
        match state.take() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {}
        }
        // SAFETY: the waiter is not moved. Below, it is answered or leaves the list before this function returns.
        unsafe { state.receiver.push_back(&waiter) };
        let on = waits_for(&self.state, state.made_in.is_elsewhere());
        drop(state);
        match wait_or_leave(&self.state, |state| &mut state.receiver, &waiter, &on, deadline) {
            Some(_done) => self.state.lock().take().map_err(|_| RecvTimeoutError::Disconnected),
            None => Err(RecvTimeoutError::Timeout),
        }
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Result<T, TryRecvError> {
        let is_over = self.sender_is_done || self.is_closed;
        let why = if is_over { TryRecvError::Disconnected } else { TryRecvError::Empty };
        self.value.take().ok_or(why)
    }
}

fn waits_for<T>(state: &Arc<SpinLock<State<T>>>, is_fed: bool) -> WaitsFor<'static> {
    WaitsFor { kind: WaitKind::Channel, address: Arc::as_ptr(state).addr(), holder: None, is_fed }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.sender_is_done = true;
        let receiver = state.receiver.pop_front(Answer::Granted);
        drop(state);
        if let Some(receiver) = receiver {
            receiver.unpark();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.close();
        // The destructor of the value is code of the program, so it does not run while the lock is held.
        let unreceived = self.state.lock().value.take();
        drop(unreceived);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender { .. }")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver { .. }")
    }
}
