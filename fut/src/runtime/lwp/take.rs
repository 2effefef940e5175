//! Which thread an LWP takes next, and where it puts the ones that get ready.
//!
//! Work stealing: what an LWP makes ready (new threads, unparked ones) it takes newest first: the newest has its data
//! in the cache, and a tree of threads is walked depth first, with few stacks alive. Threads that have yielded wait
//! behind those, oldest first. Other LWPs steal the oldest, which of a tree is the largest part. So that nobody
//! starves, every [`FAIR_TURN`]th time the oldest of another queue comes first. Threads that were readied from outside of
//! the workers, as by the reactor, are in the queue of all: they come at every [`ANY_TURN`]th turn of the yielded ones.

use super::{Lwp, Role};
use crate::runtime::{
    pool::{Policy, Priority, Shared},
    ready::Steal,
    thread::{ThreadRef, UserThread, prefetch},
};

/// A prime, so that it does not fall into step with what a program does in rounds.
const FAIR_TURN: u32 = 61;
/// Every so many turns of threads that have yielded, one of the queue of all comes first. Looking there costs 0.2 ns of
/// the 9.8 ns of a yield (1000 threads, one LWP; at every second turn 0.4 ns).
const ANY_TURN: u32 = 4;

impl Lwp {
    /// The next thread, wherever it waits; a worker also steals.
    #[inline]
    pub(super) fn take_next(&self) -> Option<ThreadRef> {
        match self.role {
            Role::Worker(number) if !self.shared.is_shut_down() => {
                self.take_local().or_else(|| self.take_elsewhere(number))
            }
            _ => None,
        }
    }

    /// The same, for a worker that has nothing to do.
    pub(super) fn take_any(&self, number: usize) -> Option<ThreadRef> {
        self.take_local().or_else(|| self.take_elsewhere(number))
    }

    /// The next thread that waits for this LWP, or for any.
    #[inline]
    pub(super) fn take_local(&self) -> Option<ThreadRef> {
        let Role::Worker(number) = self.role else { return None };
        let shared = self.shared;
        if !shared.urgent.is_empty()
            && let Some(thread) = shared.urgent.pop()
        {
            return Some(thread);
        }
        match shared.policy {
            Policy::SharedFifo => shared.any.pop(),
            Policy::Affinity => shared.queues[number].inbox.pop(),
            Policy::WorkStealing => self.take_own(number),
        }
    }

    /// The next thread, when `thread` yields: it goes on itself rather than that others are stolen for it.
    #[inline]
    pub(super) fn take_for_yield(&self, thread: ThreadRef) -> Option<ThreadRef> {
        let next = self.take_local();
        if next.is_none() && thread.priority() == Priority::Background && self.is_worker() {
            return self.shared.background.pop();
        }
        next
    }

    #[inline]
    fn take_own(&self, number: usize) -> Option<ThreadRef> {
        let queues = &self.shared.queues[number];
        let turn = self.turns.get().wrapping_add(1);
        self.turns.set(turn);
        if turn.is_multiple_of(FAIR_TURN)
            && let Some(thread) = self.take_fairly(number, turn / FAIR_TURN)
        {
            return Some(thread);
        }
        queues.newest_first.take_newest().map(ThreadRef::of_block).or_else(|| {
            // Else one that the reactor has readied would wait for a fair turn.
            if turn.is_multiple_of(ANY_TURN)
                && let Some(thread) = self.shared.any.pop()
            {
                return Some(thread);
            }
            if queues.oldest_first.is_empty() {
                return self.shared.any.pop();
            }
            let oldest = got(|| queues.oldest_first.take_oldest());
            prefetch(queues.oldest_first.hint(1), queues.oldest_first.hint(0));
            oldest.or_else(|| self.shared.any.pop())
        })
    }

    #[cold]
    fn take_fairly(&self, number: usize, round: u32) -> Option<ThreadRef> {
        let queues = &self.shared.queues[number];
        match round % 3 {
            0 => self.shared.any.pop(),
            1 => got(|| queues.oldest_first.take_oldest()),
            _ => got(|| queues.newest_first.take_oldest()),
        }
    }

    #[cold]
    fn take_elsewhere(&self, number: usize) -> Option<ThreadRef> {
        let shared = self.shared;
        if shared.policy == Policy::WorkStealing {
            let others = shared.queues.len();
            for step in 1..others {
                // Each begins with its neighbour, so that they do not all go for the same one.
                let victim = &shared.queues[(number + step) % others];
                let stolen = got(|| victim.newest_first.take_oldest())
                    .or_else(|| got(|| victim.oldest_first.take_oldest()));
                if stolen.is_some() {
                    return stolen;
                }
            }
        }
        shared.background.pop()
    }

    /// Whether there is anything that this worker could take.
    pub(super) fn sees_work(&self, number: usize) -> bool {
        let shared = self.shared;
        let in_queues = match shared.policy {
            Policy::SharedFifo => false,
            Policy::Affinity => !shared.queues[number].inbox.is_empty(),
            Policy::WorkStealing => {
                shared.queues.iter().any(|q| !q.newest_first.is_empty() || !q.oldest_first.is_empty())
            }
        };
        in_queues || !shared.any.is_empty() || !shared.urgent.is_empty() || !shared.background.is_empty()
    }

    /// Puts a thread of this runtime, which is ready, where it is taken soon.
    #[inline]
    pub(super) fn queue(&self, thread: ThreadRef) {
        match self.role {
            Role::Worker(number)
                if self.shared.policy == Policy::WorkStealing && thread.priority() == Priority::Normal =>
            {
                if self.shared.queues[number].newest_first.push(thread.block()).is_err() {
                    self.shared.any.push(thread);
                }
                self.shared.idle.wake_one();
            }
            // It runs them itself when it has unparked all that it has to.
            Role::Reactor if thread.priority() == Priority::Urgent => self.shared.urgent.push(thread),
            _ => self.shared.queue(thread),
        }
    }

    /// Puts a thread that has yielded where the others come first.
    #[inline]
    pub(super) fn queue_last(&self, thread: ThreadRef) {
        match self.role {
            Role::Worker(number)
                if self.shared.policy == Policy::WorkStealing && thread.priority() == Priority::Normal =>
            {
                if self.shared.queues[number].oldest_first.push(thread.block()).is_err() {
                    self.shared.any.push(thread);
                }
                self.shared.idle.wake_one();
            }
            _ => self.shared.queue(thread),
        }
    }
}

impl Shared {
    /// Puts a thread of this runtime, which is ready, into a queue that does not belong to the calling LWP.
    pub(in crate::runtime) fn queue(&self, thread: ThreadRef) {
        match (thread.priority(), self.policy) {
            (Priority::Background, _) => self.background.push(thread),
            (Priority::Urgent, _) => self.urgent.push(thread),
            (Priority::Normal, Policy::Affinity) => {
                self.queues[thread.home()].inbox.push(thread);
                return self.idle.wake(thread.home());
            }
            (Priority::Normal, _) => self.any.push(thread),
        }
        self.idle.wake_one();
    }
}

fn got(mut steal: impl FnMut() -> Steal<UserThread>) -> Option<ThreadRef> {
    loop {
        match steal() {
            Steal::Got(block) => return Some(ThreadRef::of_block(block)),
            Steal::Nothing => return None,
            Steal::Missed => {}
        }
    }
}
