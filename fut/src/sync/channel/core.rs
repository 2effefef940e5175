//! The shared state of a channel.
//!
//! 1. Receivers wait only while the buffer is empty and no sender waits. Senders wait only while the buffer is full.
//! 2. A sender that finds a waiting receiver puts the value into that waiter. A receiver that makes room moves the
//!    value of the first waiting sender into the buffer. So values, senders and receivers all keep their order, and no
//!    other thread can take the value or the room for which a waiter was woken.
//! 3. All this happens under one lock, for a few instructions. Memory for the buffer is allocated and freed while the
//!    lock is not held.
//! 4. A sender that gives up at its deadline takes its value back out of its waiter. A receiver that finds a value in
//!    its waiter was answered, and has not timed out.
//! 5. A waiter of a selection must first be claimed, under the same lock. A waiter that cannot be claimed is removed:
//!    its thread has selected another operation, or withdraws (`selection.rs`).
//! 6. A channel of time has a message when the message is due. Its receivers wait until then at most.

use std::time::Instant;

use super::super::{
    rt::{MadeIn, Parker, WaitKind, WaitsFor, checkpoint},
    spin_lock::{SpinGuard, SpinLock},
    wait_list::{Answer, WaitList, Waiter, Wakeups, wait_or_leave},
};

use super::{
    __select::Entered,
    buffer::{Buffer, Needs},
    selection::Choice,
    time::Timer,
};

/// Capacity of an unbounded channel.
pub(super) const UNBOUNDED: usize = usize::MAX;

pub(super) struct Core<T> {
    state: SpinLock<State<T>>,
    capacity: usize,
    /// Where it was made: a thread outside of the runtime that has made it may well keep one of its ends.
    made_in: MadeIn,
}

struct State<T> {
    buffer: Buffer<T>,
    /// Waiting senders. Each has the value to send in its waiter.
    senders: WaitList<Slot<T>>,
    /// Waiting receivers. Once answered, each has the value that it received in its waiter.
    receivers: WaitList<Slot<T>>,
    sender_count: usize,
    receiver_count: usize,
    /// Only for a channel of time.
    timer: Option<Timer<T>>,
}

/// The value of a waiter, and its choice if the waiter is part of a selection.
pub(super) struct Slot<T> {
    pub(super) value: Option<T>,
    choice: Option<Choice>,
}

impl<T> Slot<T> {
    pub(super) fn new(value: Option<T>) -> Slot<T> {
        Slot { value, choice: None }
    }
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
            buffer: Buffer::new(),
            senders: WaitList::new(),
            receivers: WaitList::new(),
            sender_count: 1,
            receiver_count: 1,
            timer: None,
        };
        Core { state: SpinLock::new(state), capacity, made_in: MadeIn::here() }
    }

    pub(super) fn is_from_outside(&self) -> bool {
        self.made_in.is_elsewhere()
    }

    /// A channel of time with one receiver. Its sender is the clock, which is never dropped.
    pub(super) fn timed(timer: Timer<T>) -> Core<T> {
        let core = Core::new(1);
        core.state.lock().timer = Some(timer);
        core
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        (self.capacity != UNBOUNDED).then_some(self.capacity)
    }

    pub(super) fn len(&self) -> usize {
        let state = self.state.lock();
        state.buffer.len() + usize::from(state.is_due())
    }

    pub(super) fn try_send(&self, value: T) -> Result<(), (NotSent, T)> {
        let mut slot = Some(value);
        match (self.send_now(&mut slot), slot) {
            (Err(why), Some(value)) => Err((why, value)),
            _ => Ok(()),
        }
    }

    /// Sends the value. The error `Full` means that the deadline has passed.
    pub(super) fn send(&self, value: T, deadline: Option<Instant>) -> Result<(), (NotSent, T)> {
        checkpoint();
        match self.try_send(value) {
            Err((NotSent::Full, value)) => self.send_later(value, deadline),
            sent => sent,
        }
    }

    pub(super) fn try_recv(&self) -> Result<T, NotReceived> {
        loop {
            let mut state = self.state.lock();
            let received = state.receive(self.capacity);
            let has_emptied = state.buffer.has_emptied();
            drop(state);
            if has_emptied {
                self.free_emptied();
            }
            match received {
                Ok(received) => return finish(received),
                Err(needs) => self.grow(needs),
            }
        }
    }

    /// Receives a value. The error `Empty` means that the deadline has passed.
    pub(super) fn recv(&self, deadline: Option<Instant>) -> Result<T, NotReceived> {
        checkpoint();
        // This comes before the lock is taken, because a plain thread may allocate its token.
        let here = Parker::here();
        loop {
            let mut state = self.state.lock();
            match state.receive(self.capacity) {
                Ok((Err(NotReceived::Empty), _)) => {
                    if let Some(received) = self.recv_later(state, here, deadline) {
                        return received;
                    }
                }
                Ok(received) => {
                    let has_emptied = state.buffer.has_emptied();
                    drop(state);
                    if has_emptied {
                        self.free_emptied();
                    }
                    return finish(received);
                }
                Err(needs) => {
                    drop(state);
                    self.grow(needs);
                }
            }
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
            self.close(|state| &mut state.receivers);
        }
    }

    pub(super) fn remove_receiver(&self) {
        let mut state = self.state.lock();
        state.receiver_count -= 1;
        if state.receiver_count > 0 {
            return;
        }
        let undelivered = std::mem::replace(&mut state.buffer, Buffer::new());
        drop(state);
        self.close(|state| &mut state.senders);
        // Destructors are code of the program, so they do not run while the lock is held.
        drop(undelivered);
    }

    /// Sends the value if there is room; otherwise leaves it in its slot.
    pub(super) fn send_now(&self, slot: &mut Option<T>) -> Result<(), NotSent> {
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
                Send::BufferTooSmall(needs) => {
                    drop(state);
                    self.grow(needs);
                }
            }
        }
    }

    /// Rule 3: gives the buffer what it needs.
    #[cold]
    fn grow(&self, needs: Needs) {
        let room = needs.allocate();
        // Another thread may have grown the buffer meanwhile.
        let unused = self.state.lock().buffer.add(room);
        drop(unused);
    }

    /// Rule 3: frees the emptied block.
    #[cold]
    fn free_emptied(&self) {
        let emptied = self.state.lock().buffer.take_emptied();
        drop(emptied);
    }

    #[cold]
    fn send_later(&self, value: T, deadline: Option<Instant>) -> Result<(), (NotSent, T)> {
        let mut waiter = Waiter::new(Parker::here(), Slot::new(Some(value)));
        let refused = loop {
            let mut state = self.state.lock();
            match state.send(&mut waiter.payload().value, self.capacity) {
                Send::Done => return Ok(()),
                Send::Handed(receiver) => {
                    drop(state);
                    receiver.unpark();
                    return Ok(());
                }
                Send::BufferTooSmall(needs) => {
                    drop(state);
                    self.grow(needs);
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
        match waiter.payload().value.take() {
            Some(value) => Err((refused, value)),
            None => Ok(()),
        }
    }

    /// Waits in the list. The caller still holds the lock under which it found no value, so no value is missed. Returns
    /// `None` if there may be a value now (rule 6).
    #[inline(never)]
    fn recv_later(
        &self,
        mut state: SpinGuard<'_, State<T>>,
        here: Parker,
        deadline: Option<Instant>,
    ) -> Option<Result<T, NotReceived>> {
        let mut waiter = Waiter::new(here, Slot::new(None));
        let due = state.timer.as_ref().map(|timer| timer.next);
        // SAFETY: the waiter is not moved until it was answered or has left the list.
        unsafe { state.receivers.push_back(&waiter) };
        drop(state);
        let until = [deadline, due].into_iter().flatten().min();
        match self.wait(&waiter, WaitKind::Channel, until, |state| &mut state.receivers) {
            Some(_) => Some(waiter.payload().value.take().ok_or(NotReceived::Disconnected)),
            // What is due may be there by now, although the deadline has passed, too.
            None if until == deadline && due.is_none_or(|due| due > Instant::now()) => {
                Some(Err(NotReceived::Empty))
            }
            None if due.is_none() => Some(Err(NotReceived::Empty)),
            None => None,
        }
    }

    /// Waits for an answer. `None`: the deadline has passed, and the waiter has left the list.
    fn wait(
        &self,
        waiter: &Waiter<Slot<T>>,
        kind: WaitKind,
        deadline: Option<Instant>,
        list: fn(&mut State<T>) -> &mut WaitList<Slot<T>>,
    ) -> Option<Answer> {
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind, address, holder: None, is_fed: self.made_in.is_elsewhere() };
        wait_or_leave(&self.state, list, waiter, &on, deadline)
    }

    /// Enters the waiter of a selection that receives, unless it can receive at once.
    ///
    /// # Safety
    /// The waiter is not moved, and the selection exists, until `leave_receivers` has returned.
    pub(super) unsafe fn enter_receiver(&self, waiter: &Waiter<Slot<T>>, choice: Choice) -> Entered {
        let mut state = self.state.lock();
        // The clock is not read again: a message that has become due since the last attempt ends the wait at once.
        if !state.buffer.is_empty() || state.sender_count == 0 || is_open(&mut state.senders, choice) {
            return Entered::Possible;
        }
        // SAFETY: the caller guarantees it.
        unsafe { state.receivers.push_back(waiter) };
        state.receivers.payload(waiter).choice = Some(choice);
        Entered::Waiting(state.timer.as_ref().map(|timer| timer.next))
    }

    /// Enters the waiter of a selection that sends, unless it can send at once.
    ///
    /// # Safety
    /// As for `enter_receiver`, with `leave_senders`.
    pub(super) unsafe fn enter_sender(&self, waiter: &Waiter<Slot<T>>, choice: Choice) -> Entered {
        let mut state = self.state.lock();
        let has_room = state.buffer.len() < self.capacity;
        if has_room || state.receiver_count == 0 || is_open(&mut state.receivers, choice) {
            return Entered::Possible;
        }
        // SAFETY: the caller guarantees it.
        unsafe { state.senders.push_back(waiter) };
        state.senders.payload(waiter).choice = Some(choice);
        Entered::Waiting(None)
    }

    /// Removes the waiter of a selection that receives, if it is in the list.
    pub(super) fn leave_receivers(&self, waiter: &Waiter<Slot<T>>) {
        let _was_there = self.state.lock().receivers.remove(waiter);
    }

    /// Removes the waiter of a selection that sends, if it is in the list.
    pub(super) fn leave_senders(&self, waiter: &Waiter<Slot<T>>) {
        let _was_there = self.state.lock().senders.remove(waiter);
    }

    /// Answers all waiters in the list. Called when the other side is disconnected.
    fn close(&self, list: fn(&mut State<T>) -> &mut WaitList<Slot<T>>) {
        loop {
            let mut wakeups = Wakeups::new();
            let mut state = self.state.lock();
            let waiting = list(&mut state);
            while !wakeups.is_full() && claim_first(waiting) {
                wakeups.push(waiting.pop_front(Answer::Closed));
            }
            drop(state);
            let is_done = !wakeups.is_full();
            wakeups.unpark_all();
            if is_done {
                return;
            }
        }
    }
}

/// Rule 5: removes waiters that cannot be claimed, up to the first that can. Returns whether there is one; it is now
/// the first in the list, and claimed.
fn claim_first<T>(list: &mut WaitList<Slot<T>>) -> bool {
    while let Some(slot) = list.front() {
        match slot.choice {
            // SAFETY: the waiter is in the list, whose lock the caller holds.
            Some(choice) if !unsafe { choice.claim() } => {
                // The thread that selected another operation of this selection does the unpark.
                let _unparked = list.pop_front(Answer::TryAgain);
            }
            _ => return true,
        }
    }
    false
}

/// Whether the list has a waiter that belongs to another selection, or to none, and can be claimed.
fn is_open<T>(list: &mut WaitList<Slot<T>>, own: Choice) -> bool {
    list.any(|slot| {
        // SAFETY: the waiter is in the list, whose lock the caller holds.
        slot.choice.is_none_or(|choice| unsafe { choice.is_open_to(own) })
    })
}

/// The result of an attempt to send.
#[must_use]
enum Send {
    Done,
    /// A receiver got the value; the caller has to unpark it.
    Handed(Parker),
    /// The buffer has to be grown first.
    BufferTooSmall(Needs),
    Refused(NotSent),
}

/// What was received. Also the sender whose value was moved to the buffer, which has to be unparked.
type Received<T> = (Result<T, NotReceived>, Option<Parker>);

/// Unparks the sender, and returns the value. Must not be called while the lock is held.
#[inline]
fn finish<T>((value, freed): Received<T>) -> Result<T, NotReceived> {
    if let Some(sender) = freed {
        sender.unpark();
    }
    value
}

impl<T> State<T> {
    /// Sends the value. If it was sent, it is no longer in the slot.
    fn send(&mut self, slot: &mut Option<T>, capacity: usize) -> Send {
        if self.receiver_count == 0 {
            return Send::Refused(NotSent::Disconnected);
        }
        if claim_first(&mut self.receivers)
            && let Some(given) = self.receivers.front()
        {
            given.value = slot.take();
            return self.receivers.pop_front(Answer::Granted).map_or(Send::Done, Send::Handed);
        }
        if self.buffer.len() >= capacity {
            return Send::Refused(NotSent::Full);
        }
        if let Some(needs) = self.buffer.needs(capacity) {
            return Send::BufferTooSmall(needs);
        }
        if let Some(value) = slot.take() {
            self.buffer.push(value);
        }
        Send::Done
    }

    fn is_due(&self) -> bool {
        self.timer.as_ref().is_some_and(Timer::is_due)
    }

    /// Takes a value. The value of a waiting sender takes the room that becomes free.
    ///
    /// # Errors
    /// If the buffer has to be grown first.
    fn receive(&mut self, capacity: usize) -> Result<Received<T>, Needs> {
        if let Some((value, is_last)) = self.timer.as_mut().and_then(Timer::take) {
            if is_last {
                self.timer = None;
            }
            return Ok((Ok(value), None));
        }
        if !self.senders.is_empty()
            && !self.buffer.is_empty()
            && let Some(needs) = self.buffer.needs(capacity)
        {
            return Err(needs);
        }
        let is_claimed = claim_first(&mut self.senders);
        let waiting = if is_claimed { self.senders.front().and_then(|slot| slot.value.take()) } else { None };
        let freed = if is_claimed { self.senders.pop_front(Answer::Granted) } else { None };
        let value = match self.buffer.pop() {
            Some(value) => {
                if let Some(waiting) = waiting {
                    self.buffer.push(waiting);
                }
                Some(value)
            }
            None => waiting,
        };
        let why = if self.sender_count == 0 { NotReceived::Disconnected } else { NotReceived::Empty };
        Ok((value.ok_or(why), freed))
    }
}
