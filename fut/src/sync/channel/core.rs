//! The shared state of a channel.
//!
//! 1. Receivers wait only while the buffer is empty and no sender waits; senders only while the buffer is full.
//! 2. A sender that finds a receiver waiting puts the value into that waiter. A receiver that makes room moves the
//!    value of the first sender waiting into the buffer. So values, senders and receivers all keep their order, and no
//!    other thread can take the value or room for which a waiter was woken.
//! 3. All this happens under one lock, for a few instructions. The buffer is grown without the lock.
//! 4. A sender that gives up at its deadline takes its value back out of its waiter; a receiver that finds a value in
//!    its own was answered, and has not timed out.

use std::{collections::VecDeque, time::Instant};

use super::super::{
    rt::{Parker, WaitKind, WaitsFor, checkpoint},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, answer_all, wait_or_leave},
};

/// Capacity of an unbounded channel.
pub(super) const UNBOUNDED: usize = usize::MAX;

/// Initial size of the buffer, if the capacity allows.
const FIRST_CAPACITY: usize = 16;

pub(super) struct Core<T> {
    state: SpinLock<State<T>>,
    capacity: usize,
}

struct State<T> {
    buffer: VecDeque<T>,
    /// Each holds the value to send.
    senders: WaitList<Option<T>>,
    /// Each holds the value that it received, once answered.
    receivers: WaitList<Option<T>>,
    sender_count: usize,
    receiver_count: usize,
}

/// Why a value was not sent; the value is returned with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSent {
    Full,
    Disconnected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotReceived {
    Empty,
    Disconnected,
}

impl<T> Core<T> {
    /// A channel with one sender and one receiver.
    pub(super) fn new(capacity: usize) -> Core<T> {
        let state = State {
            buffer: VecDeque::new(),
            senders: WaitList::new(),
            receivers: WaitList::new(),
            sender_count: 1,
            receiver_count: 1,
        };
        Core { state: SpinLock::new(state), capacity }
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        (self.capacity != UNBOUNDED).then_some(self.capacity)
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().buffer.len()
    }

    pub(super) fn try_send(&self, value: T) -> Result<(), (NotSent, T)> {
        let mut slot = Some(value);
        match (self.send_now(&mut slot), slot) {
            (Err(why), Some(value)) => Err((why, value)),
            _ => Ok(()),
        }
    }

    /// `Full` means that the deadline passed.
    pub(super) fn send(&self, value: T, deadline: Option<Instant>) -> Result<(), (NotSent, T)> {
        checkpoint();
        match self.try_send(value) {
            Err((NotSent::Full, value)) => self.send_later(value, deadline),
            sent => sent,
        }
    }

    pub(super) fn try_recv(&self) -> Result<T, NotReceived> {
        let (received, freed) = self.state.lock().receive();
        if let Some(sender) = freed {
            sender.unpark();
        }
        received
    }

    /// `Empty` means that the deadline passed.
    pub(super) fn recv(&self, deadline: Option<Instant>) -> Result<T, NotReceived> {
        checkpoint();
        match self.try_recv() {
            Err(NotReceived::Empty) => self.recv_later(deadline),
            received => received,
        }
    }

    pub(super) fn add_sender(&self) {
        self.state.lock().sender_count += 1;
    }

    pub(super) fn add_receiver(&self) {
        self.state.lock().receiver_count += 1;
    }

    pub(super) fn remove_sender(&self) {
        let mut state = self.state.lock();
        state.sender_count -= 1;
        if state.sender_count == 0 {
            drop(state);
            answer_all(&self.state, |state| &mut state.receivers, Answer::Closed);
        }
    }

    pub(super) fn remove_receiver(&self) {
        let mut state = self.state.lock();
        state.receiver_count -= 1;
        if state.receiver_count > 0 {
            return;
        }
        let undelivered = std::mem::take(&mut state.buffer);
        drop(state);
        answer_all(&self.state, |state| &mut state.senders, Answer::Closed);
        // Destructors are code of the program, so they do not run under the lock.
        drop(undelivered);
    }

    /// Sends the value if there is room; otherwise leaves it in its slot.
    fn send_now(&self, slot: &mut Option<T>) -> Result<(), NotSent> {
        loop {
            let mut state = self.state.lock();
            match state.send(slot, self.capacity) {
                Send::Done => return Ok(()),
                Send::Handed(receiver) => {
                    drop(state);
                    receiver.unpark();
                    return Ok(());
                }
                Send::Refused(why) => return Err(why),
                Send::BufferTooSmall(len) => {
                    drop(state);
                    self.grow(len);
                }
            }
        }
    }

    /// Rule 3: grows the buffer for more than `len` values.
    #[cold]
    fn grow(&self, len: usize) {
        let room = len.saturating_mul(2).max(FIRST_CAPACITY).min(self.capacity);
        let mut buffer = VecDeque::with_capacity(room);
        let mut state = self.state.lock();
        // Another thread may have done it meanwhile.
        if state.buffer.capacity() < room && state.buffer.len() <= room {
            buffer.append(&mut state.buffer);
            std::mem::swap(&mut buffer, &mut state.buffer);
        }
        drop(state);
    }

    #[cold]
    fn send_later(&self, value: T, deadline: Option<Instant>) -> Result<(), (NotSent, T)> {
        let mut waiter = Waiter::new(Parker::here(), Some(value));
        let refused = loop {
            let mut state = self.state.lock();
            match state.send(waiter.payload(), self.capacity) {
                Send::Done => return Ok(()),
                Send::Handed(receiver) => {
                    drop(state);
                    receiver.unpark();
                    return Ok(());
                }
                Send::BufferTooSmall(len) => {
                    drop(state);
                    self.grow(len);
                }
                Send::Refused(NotSent::Disconnected) => break NotSent::Disconnected,
                Send::Refused(NotSent::Full) => {
                    // SAFETY: the waiter is not moved until it was answered or has left the list.
                    unsafe { state.senders.push_back(&waiter) };
                    drop(state);
                    match self.wait(&waiter, WaitKind::ChannelSpace, deadline, |state| &mut state.senders) {
                        Some(Answer::Closed) => break NotSent::Disconnected,
                        Some(_taken) => return Ok(()),
                        None => break NotSent::Full,
                    }
                }
            }
        };
        match waiter.payload().take() {
            Some(value) => Err((refused, value)),
            None => Ok(()),
        }
    }

    #[cold]
    fn recv_later(&self, deadline: Option<Instant>) -> Result<T, NotReceived> {
        let mut waiter = Waiter::new(Parker::here(), None);
        let mut state = self.state.lock();
        match state.receive() {
            (Err(NotReceived::Empty), _) => {}
            (received, freed) => {
                drop(state);
                if let Some(sender) = freed {
                    sender.unpark();
                }
                return received;
            }
        }
        // SAFETY: the waiter is not moved until it was answered or has left the list.
        unsafe { state.receivers.push_back(&waiter) };
        drop(state);
        let answer = self.wait(&waiter, WaitKind::Channel, deadline, |state| &mut state.receivers);
        let why = if answer.is_none() { NotReceived::Empty } else { NotReceived::Disconnected };
        waiter.payload().take().ok_or(why)
    }

    /// `None`: the deadline passed, and the waiter has left the list.
    fn wait(
        &self,
        waiter: &Waiter<Option<T>>,
        kind: WaitKind,
        deadline: Option<Instant>,
        list: fn(&mut State<T>) -> &mut WaitList<Option<T>>,
    ) -> Option<Answer> {
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind, address, holder: None };
        wait_or_leave(&self.state, list, waiter, &on, deadline)
    }
}

/// The result of an attempt to send.
#[must_use]
enum Send {
    Done,
    /// A receiver got the value; the caller has to unpark it.
    Handed(Parker),
    /// The buffer has to be grown beyond this length first.
    BufferTooSmall(usize),
    Refused(NotSent),
}

impl<T> State<T> {
    /// Takes the value out of the slot if it was sent.
    fn send(&mut self, slot: &mut Option<T>, capacity: usize) -> Send {
        if self.receiver_count == 0 {
            return Send::Refused(NotSent::Disconnected);
        }
        if let Some(given) = self.receivers.front() {
            *given = slot.take();
            return self.receivers.pop_front(Answer::Granted).map_or(Send::Done, Send::Handed);
        }
        if self.buffer.len() >= capacity {
            return Send::Refused(NotSent::Full);
        }
        if self.buffer.len() == self.buffer.capacity() {
            return Send::BufferTooSmall(self.buffer.len());
        }
        if let Some(value) = slot.take() {
            self.buffer.push_back(value);
        }
        Send::Done
    }

    /// Takes a value; also returns the sender to be unparked, whose value was moved to the buffer.
    fn receive(&mut self) -> (Result<T, NotReceived>, Option<Parker>) {
        let waiting = self.senders.front().and_then(Option::take);
        let freed = if waiting.is_some() { self.senders.pop_front(Answer::Granted) } else { None };
        let value = match self.buffer.pop_front() {
            Some(value) => {
                // Needs no allocation: a value was just removed.
                self.buffer.extend(waiting);
                Some(value)
            }
            None => waiting,
        };
        let why = if self.sender_count == 0 { NotReceived::Disconnected } else { NotReceived::Empty };
        (value.ok_or(why), freed)
    }
}
