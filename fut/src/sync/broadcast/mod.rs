//! A channel in which each receiver gets each value, like tokio's.
//!
//! ```text
//!   positions   … 5 | 6  7  8  9 | 10          the ring keeps the last `capacity` values; `tail` is 10
//!                     ▲        ▲
//!                     slow     fast            what a receiver reads next; one at 5 has lost a value
//! ```
//! 1. All state is under one lock. Values are shared (`Arc`). They are cloned and dropped while the lock is not held,
//!    because that runs code of the program.
//! 2. A value counts the receivers that have not read it. The last one takes it out of the ring.
//! 3. Sending never waits: it overwrites the oldest value. A receiver that has not read that value is told how many it
//!    lost.
//!
//! ```
//! # let runtime = fut::Runtime::builder().lwps(2).build()?;
//! # runtime.run(|| {
//! use fut::sync::broadcast;
//!
//! let (news, mut first) = broadcast::channel(16);
//! let mut second = news.subscribe();
//! news.send("hello").unwrap();
//! assert_eq!((first.recv(), second.recv()), (Ok("hello"), Ok("hello")));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

mod error;
mod receiver;

use std::{fmt, sync::Arc};

pub use self::{
    error::{RecvError, TryRecvError},
    receiver::Receiver,
};
pub use super::channel::SendError;
use super::{
    rt::MadeIn,
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, answer_all},
};

/// Sends to all receivers. Clones send to the same receivers.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: SpinLock<State<T>>,
    /// Where it was made: a thread outside of the runtime that has made it may well keep one of its ends.
    made_in: MadeIn,
}

struct State<T> {
    /// The slot of a value is its position modulo the number of slots.
    slots: Box<[Slot<T>]>,
    /// The position of the next value.
    tail: u64,
    senders: usize,
    receivers: usize,
    /// Receivers that have read everything and wait for the next value.
    waiting: WaitList<u64>,
}

struct Slot<T> {
    value: Option<Arc<T>>,
    /// Number of receivers that have not read the value.
    unread: usize,
}

/// A channel that keeps the last `capacity` values, at least 1.
///
/// # Panics
/// If there is no memory for that many slots.
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1);
    let mut slots = Vec::new();
    slots.try_reserve_exact(capacity).expect("memory for the slots of the channel");
    slots.extend((0..capacity).map(|_| Slot { value: None, unread: 0 }));
    let state = State { slots: slots.into(), tail: 0, senders: 1, receivers: 1, waiting: WaitList::new() };
    let shared = Arc::new(Shared { state: SpinLock::new(state), made_in: MadeIn::here() });
    (Sender { shared: Arc::clone(&shared) }, Receiver::new(shared, 0))
}

impl<T> Sender<T> {
    /// Sends a value to all receivers that exist now. Returns their number. Never waits.
    ///
    /// # Errors
    /// Returns the value if there is no receiver.
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let mut value = Some(Arc::new(value));
        let mut state = self.shared.state.lock();
        let receivers = state.receivers;
        let overwritten = if receivers > 0 { state.put(&mut value) } else { None };
        let tail = state.tail;
        drop(state);
        drop(overwritten);
        if let Some(unsent) = value.and_then(Arc::into_inner) {
            return Err(SendError(unsent));
        }
        answer_all(&self.shared.state, |state| &mut state.waiting, Answer::TryAgain, |next| *next < tail);
        Ok(receivers)
    }

    /// A new receiver, for the values that are sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::subscribe(Arc::clone(&self.shared))
    }

    /// Number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.shared.state.lock().receivers
    }

    /// Whether both send to the same receivers.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> State<T> {
    /// Appends the value, and returns what it overwrites.
    fn put(&mut self, value: &mut Option<Arc<T>>) -> Option<Arc<T>> {
        let (tail, unread) = (self.tail, self.receivers);
        self.tail += 1;
        let slot = self.slot(tail);
        slot.unread = unread;
        std::mem::replace(&mut slot.value, value.take())
    }

    fn slot(&mut self, position: u64) -> &mut Slot<T> {
        let place = position % self.slots.len() as u64;
        &mut self.slots[place as usize]
    }

    /// The oldest position in the ring.
    fn oldest(&self) -> u64 {
        self.tail.saturating_sub(self.slots.len() as u64)
    }

    /// Reads the value at a position in the ring.
    fn read(&mut self, position: u64) -> Option<Arc<T>> {
        let slot = self.slot(position);
        slot.unread -= 1;
        // Rule 2.
        if slot.unread == 0 { slot.value.take() } else { slot.value.clone() }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.shared.state.lock().senders += 1;
        Sender { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.senders -= 1;
        let is_last = state.senders == 0;
        drop(state);
        if is_last {
            answer_all(&self.shared.state, |state| &mut state.waiting, Answer::TryAgain, |_| true);
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender { .. }")
    }
}
