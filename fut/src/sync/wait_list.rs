//! Waiters: a queue of nodes on the stacks of the waiting threads. So blocking allocates nothing.
//!
//! ```text
//!   last ──▶ C ──next──▶ A ──next──▶ B ──next──▶ C        a ring; the first is the one after the last
//! ```
//! A node is in at most one list, and its `answer` is its state:
//! ```text
//!   NotAsked ──push──▶ Pending ──pop──▶ Granted | TryAgain | Closed     by the waker, under the lock of the list
//!       ▲                 │
//!       └─────remove──────┘                                             by the waiter itself, or on its behalf, likewise
//! ```

use std::{ptr, time::Instant};

use super::{
    rt::{LeaveQueue, Parker, WaitsFor, yield_now},
    spin_lock::SpinLock,
};
use crate::model_check::{
    UnsafeCell,
    atomic::{AtomicU32, Ordering},
};

/// A waiter's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Answer {
    /// The waiter is in no list.
    NotAsked = 0,
    /// The waiter is in a list, and has no answer yet.
    Pending = 1,
    /// The waiter has got what it waited for.
    Granted = 2,
    /// The waiter should try again.
    TryAgain = 3,
    /// The waiter will never get what it waited for.
    Closed = 4,
}

impl Answer {
    fn from_number(number: u32) -> Answer {
        match number {
            0 => Answer::NotAsked,
            1 => Answer::Pending,
            2 => Answer::Granted,
            3 => Answer::TryAgain,
            _ => Answer::Closed,
        }
    }
}

/// A waiter. `P` is the payload for its primitive. The payload belongs to the list while the waiter is in one.
pub(super) struct Waiter<P> {
    thread: Parker,
    answer: AtomicU32,
    links: UnsafeCell<Links<P>>,
    payload: UnsafeCell<P>,
}

struct Links<P> {
    previous: *const Waiter<P>,
    next: *const Waiter<P>,
}

// SAFETY: links and payload are accessed only under the lock of the list, and after the answer only by the waiter.
unsafe impl<P: Send> Sync for Waiter<P> {}

impl<P> Waiter<P> {
    pub(super) fn new(thread: Parker, payload: P) -> Waiter<P> {
        let links = Links { previous: ptr::null(), next: ptr::null() };
        Waiter {
            thread,
            answer: AtomicU32::new(Answer::NotAsked as u32),
            links: UnsafeCell::new(links),
            payload: UnsafeCell::new(payload),
        }
    }

    /// Parks until there is an answer. `None`: the deadline has passed, and the waiter is still in the list, unless it
    /// was answered at the same time. The caller has to check that under the lock of the list (rule 4 of [`super`]).
    ///
    /// If the thread never runs again, this does not return, and `leave` is called instead (rule 7 of [`super`]).
    pub(super) fn wait(
        &self,
        on: &WaitsFor<'_>,
        deadline: Option<Instant>,
        leave: LeaveQueue<'_>,
    ) -> Option<Answer> {
        let _in_queue = self.thread.in_queue(&leave);
        let mut has_left = false;
        loop {
            let answer = self.answer();
            if answer != Answer::Pending {
                return Some(answer);
            }
            match deadline {
                None => self.thread.park(on),
                Some(deadline) if Instant::now() < deadline => self.thread.park_until(on, deadline),
                Some(_) if has_left => return None,
                // A wait whose deadline has already passed still lets others run. Otherwise a loop of such waits would
                // keep the awaited thread off this LWP.
                Some(_) => yield_now(),
            }
            has_left = true;
        }
    }

    /// The payload, while the waiter is in no list.
    pub(super) fn payload(&mut self) -> &mut P {
        assert_ne!(self.answer(), Answer::Pending, "a waiter's payload belongs to the list");
        // SAFETY: the node is no longer in a list (`answer` was Acquire), so nothing else accesses it; and it is
        // `&mut`.
        self.payload.with_mut(|payload| unsafe { &mut *payload })
    }

    pub(super) fn answer(&self) -> Answer {
        // Acquire: pairs with the Release in `WaitList::pop_front`; makes the waker's earlier writes visible.
        Answer::from_number(self.answer.load(Ordering::Acquire))
    }

    fn links(&self) -> (*const Waiter<P>, *const Waiter<P>) {
        // SAFETY: only `WaitList` calls this, and the caller holds the lock of the list.
        let links = self.links.with(|links| unsafe { &*links });
        (links.previous, links.next)
    }

    fn set_previous(&self, previous: *const Waiter<P>) {
        // SAFETY: as in `links`.
        self.links.with_mut(|links| unsafe { (*links).previous = previous });
    }

    fn set_next(&self, next: *const Waiter<P>) {
        // SAFETY: as in `links`.
        self.links.with_mut(|links| unsafe { (*links).next = next });
    }
}

impl<P> Drop for Waiter<P> {
    fn drop(&mut self) {
        // Relaxed: if it is `Pending`, this thread is being unwound while it waits.
        if self.answer.load(Ordering::Relaxed) == Answer::Pending as u32 {
            // Other threads would follow a dangling link into this stack.
            std::process::abort();
        }
    }
}

/// Waiters in the order of their arrival. Guarded by a [`SpinLock`](super::spin_lock::SpinLock).
#[derive(Debug)]
pub(super) struct WaitList<P> {
    /// Null if the list is empty.
    last: *const Waiter<P>,
}

// SAFETY: the nodes are `Sync` and valid while they are in the list (`push_back`); their payloads are `Send`.
unsafe impl<P: Send> Send for WaitList<P> {}

impl<P> Default for WaitList<P> {
    fn default() -> WaitList<P> {
        WaitList::new()
    }
}

impl<P> WaitList<P> {
    pub(super) const fn new() -> WaitList<P> {
        WaitList { last: ptr::null() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last.is_null()
    }

    /// Adds the waiter after all others.
    ///
    /// # Safety
    /// Until it is popped or removed, the waiter is neither moved nor added to another list.
    pub(super) unsafe fn push_back(&mut self, waiter: &Waiter<P>) {
        self.link(waiter);
        self.last = waiter;
    }

    /// Adds the waiter before all others.
    ///
    /// # Safety
    /// As for [`push_back`](WaitList::push_back).
    pub(super) unsafe fn push_front(&mut self, waiter: &Waiter<P>) {
        self.link(waiter);
        if self.is_empty() {
            self.last = waiter;
        }
    }

    /// The payload of the first waiter.
    pub(super) fn front(&mut self) -> Option<&mut P> {
        let first = self.first()?;
        // SAFETY: the waiter is in the list, whose lock the caller holds and whose borrow is exclusive.
        Some(first.payload.with_mut(|payload| unsafe { &mut *payload }))
    }

    /// Removes the first waiter and stores its answer. The waiter may cease to exist at once, and must not be accessed
    /// any more. The caller has to unpark the returned thread after it has released the lock.
    #[must_use = "the thread must be unparked"]
    pub(super) fn pop_front(&mut self, answer: Answer) -> Option<Parker> {
        let first = self.first()?;
        self.unlink(first);
        let thread = first.thread;
        // Release: pairs with the Acquire in `Waiter::answer`; publishes the waker's writes and the payload.
        first.answer.store(answer as u32, Ordering::Release);
        Some(thread)
    }

    /// Removes a waiter that gives up, or whose thread never runs again. `false` if it was answered before: then the
    /// answer counts.
    #[must_use]
    pub(super) fn remove(&mut self, waiter: &Waiter<P>) -> bool {
        if waiter.answer() != Answer::Pending {
            return false;
        }
        self.unlink(waiter);
        // Relaxed: from now on only the waiter itself reads it, if its thread runs again, and that thread calls this
        // function.
        waiter.answer.store(Answer::NotAsked as u32, Ordering::Relaxed);
        true
    }

    /// The payload of a waiter in this list.
    pub(super) fn payload<'a>(&'a mut self, waiter: &'a Waiter<P>) -> &'a mut P {
        // SAFETY: the waiter is in this list, whose lock the caller holds and whose borrow is exclusive.
        waiter.payload.with_mut(|payload| unsafe { &mut *payload })
    }

    /// Whether the condition holds for the payload of any waiter.
    pub(super) fn any(&mut self, mut condition: impl FnMut(&P) -> bool) -> bool {
        let mut next = self.first();
        while let Some(waiter) = next {
            // SAFETY: the waiter is in the list, whose lock the caller holds and whose borrow is exclusive.
            if condition(waiter.payload.with(|payload| unsafe { &*payload })) {
                return true;
            }
            if ptr::eq(waiter, self.last) {
                return false;
            }
            // SAFETY: in a ring there is always a next node, and a node in the list is valid (`push_back`).
            next = unsafe { waiter.links().1.as_ref() };
        }
        false
    }

    fn first<'a>(&self) -> Option<&'a Waiter<P>> {
        // SAFETY: a node in the list is valid (`push_back`).
        let last = unsafe { self.last.as_ref() }?;
        // SAFETY: as above; in a ring there is always a next node.
        unsafe { last.links().1.as_ref() }
    }

    fn link(&mut self, waiter: &Waiter<P>) {
        // Relaxed: the lock of the list orders this store.
        waiter.answer.store(Answer::Pending as u32, Ordering::Relaxed);
        // SAFETY: a node in the list is valid (`push_back`).
        let (last, first) = match unsafe { self.last.as_ref() } {
            Some(last) => (last, self.first().unwrap_or(last)),
            None => (waiter, waiter),
        };
        waiter.set_previous(last);
        waiter.set_next(first);
        last.set_next(waiter);
        first.set_previous(waiter);
    }

    fn unlink(&mut self, waiter: &Waiter<P>) {
        let (previous, next) = waiter.links();
        if ptr::eq(next, waiter) {
            self.last = ptr::null();
            return;
        }
        // SAFETY: the neighbours of the waiter are in the list, and so valid (`push_back`).
        unsafe { &*previous }.set_next(next);
        // SAFETY: as above.
        unsafe { &*next }.set_previous(previous);
        if ptr::eq(self.last, waiter) {
            self.last = previous;
        }
    }
}

/// Threads to be unparked after the lock is released. When this is full, the caller unparks them and continues.
pub(super) struct Wakeups {
    threads: [Option<Parker>; Wakeups::CAPACITY],
    len: usize,
}

impl Wakeups {
    /// The capacity is limited, because this is on the stack of a user thread.
    const CAPACITY: usize = 16;

    pub(super) fn new() -> Wakeups {
        Wakeups { threads: [const { None }; Wakeups::CAPACITY], len: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == Wakeups::CAPACITY
    }

    pub(super) fn push(&mut self, thread: Option<Parker>) {
        if let (Some(thread), Some(place)) = (thread, self.threads.get_mut(self.len)) {
            *place = Some(thread);
            self.len += 1;
        }
    }

    /// Unparks all threads. Must not be called while the lock is held.
    pub(super) fn unpark_all(mut self) {
        self.threads.iter_mut().take(self.len).filter_map(Option::take).for_each(Parker::unpark);
    }
}

/// Answers the waiters at the front of a list that `lock` guards, as long as `is_asked` is true for their payloads, and
/// unparks them. If waiters may come back, `is_asked` must be false for them then. Otherwise this might never end.
pub(super) fn answer_all<S, P>(
    lock: &SpinLock<S>,
    list: impl Fn(&mut S) -> &mut WaitList<P>,
    answer: Answer,
    is_asked: impl Fn(&P) -> bool,
) {
    loop {
        let mut wakeups = Wakeups::new();
        let mut state = lock.lock();
        let waiting = list(&mut state);
        while !wakeups.is_full() && waiting.front().is_some_and(|payload| is_asked(payload)) {
            wakeups.push(waiting.pop_front(answer));
        }
        let is_done = !wakeups.is_full();
        drop(state);
        wakeups.unpark_all();
        if is_done {
            return;
        }
    }
}

/// Waits for an answer that need not be passed on (rule 7 of [`super`]). `None`: the deadline has passed, and the
/// waiter has left the list that `lock` guards (rule 4).
pub(super) fn wait_or_leave<S, P>(
    lock: &SpinLock<S>,
    list: impl Fn(&mut S) -> &mut WaitList<P>,
    waiter: &Waiter<P>,
    on: &WaitsFor<'_>,
    deadline: Option<Instant>,
) -> Option<Answer> {
    let leave = || {
        let _was_there = list(&mut lock.lock()).remove(waiter);
    };
    loop {
        let answer = waiter.wait(on, deadline, &leave);
        if answer.is_some() || list(&mut lock.lock()).remove(waiter) {
            return answer;
        }
        // The waiter was answered before it could leave.
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// After each batch, more waiters arrive than one batch answers.
    #[test]
    fn who_comes_back_while_all_are_answered_waits_for_the_next_time() {
        const ARRIVE: usize = 2 * Wakeups::CAPACITY;
        let new =
            |round: u32| (0..ARRIVE).map(move |_| Waiter::new(Parker::here(), round)).collect::<Vec<_>>();
        let (waiting, later): (Vec<_>, Vec<_>) = (new(0), (0..10).map(|_| new(1)).collect());
        let lock = SpinLock::new(WaitList::new());
        let enter = |list: &mut WaitList<u32>, waiters: &[Waiter<u32>]| {
            for waiter in waiters {
                // SAFETY: they are not moved, and are removed below.
                unsafe { list.push_back(waiter) };
            }
        };
        enter(&mut lock.lock(), &waiting);
        let batches = Cell::new(0);
        let arrive = |list: &mut WaitList<u32>| {
            enter(list, &later[batches.get()]);
            batches.set(batches.get() + 1);
        };
        answer_all(
            &lock,
            |list| {
                arrive(list);
                list
            },
            Answer::TryAgain,
            |round| *round == 0,
        );
        assert!(waiting.iter().all(|waiter| waiter.answer() == Answer::TryAgain));
        let mut list = lock.lock();
        let removed = later.iter().flatten().filter(|waiter| list.remove(waiter)).count();
        assert_eq!(removed, batches.get() * ARRIVE);
    }
}
