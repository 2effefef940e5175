//! Ready threads that keep to one LWP, in that LWP's hands: nothing else looks here, so nothing is atomic, and nobody is
//! woken for what comes here.

use std::{cell::RefCell, collections::VecDeque};

use super::SharedQueue;
use crate::runtime::thread::ThreadRef;

/// See above. Borrowed only for the time of a call here, in which nothing switches.
#[derive(Default)]
pub(in crate::runtime) struct OwnQueues {
    /// Were blocked, and readied by others; the LWP takes the oldest.
    pub(in crate::runtime) arrived: OwnQueue,
    /// Were blocked, and readied by this LWP, which takes the newest.
    pub(in crate::runtime) unparked: OwnQueue,
    /// Have yielded; the LWP takes the oldest.
    pub(in crate::runtime) yielded: OwnQueue,
    /// All, where the policy is first in, first out.
    pub(in crate::runtime) in_turn: OwnPart,
    pub(in crate::runtime) background: OwnPart,
}

/// A queue with two ends.
#[derive(Default)]
pub(in crate::runtime) struct OwnQueue(RefCell<VecDeque<ThreadRef>>);

impl OwnQueue {
    #[inline]
    pub(in crate::runtime) fn push(&self, thread: ThreadRef) {
        self.0.borrow_mut().push_back(thread);
    }

    #[inline]
    pub(in crate::runtime) fn take_newest(&self) -> Option<ThreadRef> {
        self.0.borrow_mut().pop_back()
    }

    #[inline]
    pub(in crate::runtime) fn take_oldest(&self) -> Option<ThreadRef> {
        self.0.borrow_mut().pop_front()
    }

    /// The one that is `after` places after the oldest: a hint for the cache.
    #[inline]
    pub(in crate::runtime) fn hint(&self, behind: usize) -> Option<ThreadRef> {
        self.0.borrow().get(behind).copied()
    }
}

/// What only this LWP may take of a queue that is first in, first out; the rest of it is a [`SharedQueue`]. Together they
/// are in the order in which threads came, as far as this LWP sees it.
#[derive(Default)]
pub(in crate::runtime) struct OwnPart(RefCell<VecDeque<Entry>>);

struct Entry {
    thread: ThreadRef,
    /// How many had come to the rest before: they go first.
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

    /// The oldest of this part.
    pub(in crate::runtime) fn take_own(&self) -> Option<ThreadRef> {
        self.0.borrow_mut().pop_front().map(|entry| entry.thread)
    }
}
