//! Ready queues of threads that are pinned to one LWP. Only that LWP uses them, so nothing is atomic, and no LWP is
//! woken for threads that are queued here.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

use super::SharedQueue;
use crate::runtime::thread::ThreadRef;

/// The queues of one LWP. They are borrowed only during a call of this module, and such a call never switches.
#[derive(Default)]
pub(in crate::runtime) struct OwnQueues {
    /// Threads unparked by others; the LWP takes the oldest.
    pub(in crate::runtime) arrived: OwnQueue,
    /// Threads unparked by this LWP, which takes the newest.
    pub(in crate::runtime) unparked: OwnQueue,
    /// Threads that have yielded; the LWP takes the oldest.
    pub(in crate::runtime) yielded: OwnQueue,
    /// All threads, if the policy is first in, first out.
    pub(in crate::runtime) in_turn: OwnPart,
    pub(in crate::runtime) background: OwnPart,
}

/// A double-ended queue.
#[derive(Default)]
pub(in crate::runtime) struct OwnQueue {
    threads: RefCell<VecDeque<ThreadRef>>,
    /// How often the oldest thread was taken.
    taken: Cell<usize>,
}

impl OwnQueue {
    #[inline]
    pub(in crate::runtime) fn push(&self, thread: ThreadRef) {
        self.threads.borrow_mut().push_back(thread);
    }

    /// The position after the newest thread, for [`has_taken`](OwnQueue::has_taken). Valid only if the newest is never
    /// taken.
    pub(in crate::runtime) fn end(&self) -> usize {
        self.taken.get().wrapping_add(self.threads.borrow().len())
    }

    /// Whether all threads before position `end` have been taken.
    pub(in crate::runtime) fn has_taken(&self, end: usize) -> bool {
        self.taken.get().wrapping_sub(end) as isize >= 0
    }

    #[inline]
    pub(in crate::runtime) fn take_newest(&self) -> Option<ThreadRef> {
        self.threads.borrow_mut().pop_back()
    }

    #[inline]
    pub(in crate::runtime) fn take_oldest(&self) -> Option<ThreadRef> {
        let oldest = self.threads.borrow_mut().pop_front()?;
        self.taken.set(self.taken.get().wrapping_add(1));
        Some(oldest)
    }

    /// The thread `after` places after the oldest: a hint for prefetching.
    #[inline]
    pub(in crate::runtime) fn hint(&self, after: usize) -> Option<ThreadRef> {
        self.threads.borrow().get(after).copied()
    }
}

/// The part of a first-in, first-out queue from which only this LWP may take. The rest is a [`SharedQueue`]. Together
/// they keep the order of arrival, as this LWP sees it.
#[derive(Default)]
pub(in crate::runtime) struct OwnPart(RefCell<VecDeque<Entry>>);

struct Entry {
    thread: ThreadRef,
    /// Number of threads pushed to the rest before this one. Those come first.
    after: u64,
}

impl OwnPart {
    pub(in crate::runtime) fn push(&self, thread: ThreadRef, rest: &SharedQueue) {
        self.0.borrow_mut().push_back(Entry { thread, after: rest.came() });
    }

    pub(in crate::runtime) fn take_oldest(&self, rest: &SharedQueue) -> Option<ThreadRef> {
        let mut own = self.0.borrow_mut();
        let is_first = own.front().is_some_and(|entry| entry.after <= rest.went());
        if is_first {
            return own.pop_front().map(|entry| entry.thread);
        }
        rest.pop().or_else(|| own.pop_front().map(|entry| entry.thread))
    }

    /// Takes the oldest thread of this part.
    pub(in crate::runtime) fn take_own(&self) -> Option<ThreadRef> {
        self.0.borrow_mut().pop_front().map(|entry| entry.thread)
    }
}
