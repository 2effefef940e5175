//! Which thread an LWP takes next, and where it puts the ones that get ready.
//!
//! Work stealing: what an LWP makes ready (new threads, unparked ones) it takes newest first: the newest has its data
//! in the cache, and a tree of threads is walked depth first, with few stacks alive. Threads that have yielded wait
//! after those, oldest first. Other LWPs steal the oldest, which of a tree is the largest part. So that nobody
//! starves, every [`FAIR_TURN`]th time the oldest of another queue comes first. Threads that were readied from outside of
//! the workers, as by the reactor, are in the queue of all: they come at every [`ANY_TURN`]th turn of the yielded ones.
//!
//! A thread with a home is run by that LWP and no other. In a pinned runtime, the first dispatch gives it one. Readied
//! by that LWP it is in its own queues, which are not atomic; readied by anybody else, in its inbox, which is emptied into
//! the own queues before each choice. So what others can take, and what they are woken for, are threads that have not
//! begun. First come those from the inbox, in the order in which they came there: of the LWP's own, none is newer. Then
//! the unparked ones, then new ones, which have no stacks yet. The order is otherwise the same.
//!
//! In a migrating runtime, only a thread that leaves its LWP while that unwinds has a home, until it comes back. It is
//! rare, and comes at a fair turn, or as the queue of all does.

use std::{cell::Cell, ptr};

use super::{Lwp, Role};
use crate::runtime::{
    pool::{Policy, Priority, Shared},
    ready::{Bell, Home, OwnQueues, Owner, Thief},
    thread::{ThreadRef, UserThread, prefetch},
};

/// A prime, so that it does not fall into step with what a program does in rounds.
const FAIR_TURN: u32 = 61;
/// Every so many turns of threads that have yielded, one of the queue of all comes first. Looking there costs 0.2 ns of
/// the 9.8 ns of a yield (1000 threads, one LWP; at every second turn 0.4 ns).
const ANY_TURN: u32 = 4;
/// Every so many turns, a background thread that keeps to this LWP comes first. Others that have time cannot help it, and a
/// thread that yields until it has done something would wait for ever.
const BACKGROUND_TURN: u32 = 509;
/// Room in each of a worker's deques. What does not fit goes to the queue of all.
const DEQUE_LEN: usize = 1024;

/// What a worker has to choose from before it looks elsewhere.
pub(in crate::runtime) struct Choice {
    number: usize,
    /// New threads, and unparked ones that may migrate: the worker takes the newest, thieves the oldest.
    newest_first: Owner<UserThread>,
    /// Threads that have yielded and may migrate: everybody takes the oldest.
    oldest_first: Owner<UserThread>,
    /// Threads whose home this is.
    own: OwnQueues,
    /// Counts the threads taken, so that every so often the oldest comes first.
    turns: Cell<u32>,
}

/// What others may steal from a worker.
pub(in crate::runtime) struct Stealable {
    newest_first: Thief<UserThread>,
    oldest_first: Thief<UserThread>,
}

impl Choice {
    /// For each of so many workers; and what they may steal from each other.
    pub(in crate::runtime) fn of_workers(workers: usize) -> (Vec<Choice>, Box<[Stealable]>) {
        let choice = |number, newest_first, oldest_first| {
            let (own, turns) = (OwnQueues::default(), Cell::new(0));
            Choice { number, newest_first, oldest_first, own, turns }
        };
        if workers == 1 {
            return (vec![choice(0, Owner::alone(DEQUE_LEN), Owner::alone(DEQUE_LEN))], Box::default());
        }
        let (choices, stealable): (Vec<_>, Vec<_>) = (0..workers)
            .map(|number| {
                let (newest, oldest) = (Owner::new(DEQUE_LEN), Owner::new(DEQUE_LEN));
                let stealable = Stealable { newest_first: newest.1, oldest_first: oldest.1 };
                (choice(number, newest.0, oldest.0), stealable)
            })
            .unzip();
        (choices, stealable.into())
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// How many were chosen so far, this one included.
    #[inline]
    fn next_turn(&self) -> u32 {
        let turn = self.turns.get().wrapping_add(1);
        self.turns.set(turn);
        turn
    }
}

impl Stealable {
    fn steal(&self) -> Option<ThreadRef> {
        self.newest_first.steal().or_else(|| self.oldest_first.steal()).map(ThreadRef::of_block)
    }

    fn is_empty(&self) -> bool {
        self.newest_first.is_empty() && self.oldest_first.is_empty()
    }
}

impl Lwp {
    /// The next thread, wherever it waits; a worker also steals.
    #[inline]
    pub(super) fn take_next(&self) -> Option<ThreadRef> {
        match &self.choice {
            Some(choice) if !self.shared.is_shut_down() => self.take_any(choice),
            _ => None,
        }
    }

    /// The same, for a worker that has nothing to do.
    #[inline]
    pub(super) fn take_any(&self, choice: &Choice) -> Option<ThreadRef> {
        self.take_local(choice).or_else(|| self.take_elsewhere(choice))
    }

    /// The next thread that waits for this LWP, or for any.
    #[inline]
    fn take_local(&self, choice: &Choice) -> Option<ThreadRef> {
        let shared = self.shared;
        if shared.is_pinned {
            if !self.home.inbox.is_empty() {
                self.empty_inbox(choice);
            }
            let turn = choice.next_turn();
            if turn.is_multiple_of(BACKGROUND_TURN)
                && let Some(thread) = choice.own.background.take_own()
            {
                return Some(thread);
            }
            return match shared.policy {
                Policy::WorkStealing => self.take_begun_or_new(choice, turn),
                Policy::SharedFifo | Policy::Affinity => choice.own.in_turn.take_oldest(&shared.any),
            };
        }
        if !shared.urgent.is_empty()
            && let Some(thread) = shared.urgent.pop()
        {
            return Some(thread);
        }
        match shared.policy {
            Policy::WorkStealing => self.take_migrating(choice),
            Policy::SharedFifo | Policy::Affinity => self.home.inbox.pop().or_else(|| shared.any.pop()),
        }
    }

    /// The next thread, when `thread` yields: it continues itself rather than that others are stolen for it.
    #[inline]
    pub(super) fn take_for_yield(&self, thread: ThreadRef) -> Option<ThreadRef> {
        let choice = self.choice.as_ref().filter(|_| !self.shared.is_shut_down())?;
        let next = self.take_local(choice);
        if next.is_none() && thread.priority() == Priority::Background {
            return choice.own.background.take_oldest(&self.shared.background);
        }
        next
    }

    /// Of a migrating runtime.
    #[inline]
    fn take_migrating(&self, choice: &Choice) -> Option<ThreadRef> {
        let any = || self.home.inbox.pop().or_else(|| self.shared.any.pop());
        let turn = choice.next_turn();
        if turn.is_multiple_of(FAIR_TURN)
            && let Some(thread) = self.take_fairly(choice, turn / FAIR_TURN)
        {
            return Some(thread);
        }
        choice.newest_first.take_newest().map(ThreadRef::of_block).or_else(|| {
            // Else one that the reactor has readied would wait for a fair turn.
            if turn.is_multiple_of(ANY_TURN)
                && let Some(thread) = any()
            {
                return Some(thread);
            }
            if choice.oldest_first.is_empty() {
                return any();
            }
            let oldest = choice.oldest_first.take_oldest().map(ThreadRef::of_block);
            prefetch(choice.oldest_first.hint(1), choice.oldest_first.hint(0));
            oldest.or_else(any)
        })
    }

    /// Of a pinned runtime.
    #[inline]
    fn take_begun_or_new(&self, choice: &Choice, turn: u32) -> Option<ThreadRef> {
        let own = &choice.own;
        if turn.is_multiple_of(FAIR_TURN)
            && let Some(thread) = self.take_fairly(choice, turn / FAIR_TURN)
        {
            return Some(thread);
        }
        let newest = own.arrived.take_oldest().or_else(|| own.unparked.take_newest());
        newest.or_else(|| choice.newest_first.take_newest().map(ThreadRef::of_block)).or_else(|| {
            if turn.is_multiple_of(ANY_TURN)
                && let Some(thread) = self.shared.any.pop()
            {
                return Some(thread);
            }
            let Some(oldest) = own.yielded.take_oldest() else { return self.shared.any.pop() };
            let block = |behind| own.yielded.hint(behind).map_or(ptr::null(), |t| ptr::from_ref(t.block()));
            prefetch(block(1), block(0));
            Some(oldest)
        })
    }

    #[cold]
    fn take_fairly(&self, choice: &Choice, round: u32) -> Option<ThreadRef> {
        match round % 3 {
            0 => self.home.inbox.pop().or_else(|| self.shared.any.pop()),
            1 if self.shared.is_pinned => choice.own.yielded.take_oldest(),
            1 => choice.oldest_first.take_oldest().map(ThreadRef::of_block),
            // Two queues where the thread is pinned: each in its turn.
            _ if round.is_multiple_of(2) && self.shared.is_pinned => choice.own.unparked.take_oldest(),
            _ => choice.newest_first.take_oldest().map(ThreadRef::of_block),
        }
    }

    #[cold]
    fn take_elsewhere(&self, choice: &Choice) -> Option<ThreadRef> {
        let stealable = &self.shared.stealable;
        for step in 1..stealable.len() {
            // Each begins with its neighbour, so that they do not all go for the same one.
            let stolen = stealable[(choice.number + step) % stealable.len()].steal();
            if stolen.is_some() {
                return stolen;
            }
        }
        choice.own.background.take_oldest(&self.shared.background)
    }

    /// Of a pinned runtime.
    #[cold]
    fn empty_inbox(&self, choice: &Choice) {
        // No more than are there now, however many come meanwhile.
        for thread in (0..self.home.inbox.len()).map_while(|_| self.home.inbox.pop()) {
            let is_next = self.shared.policy == Policy::WorkStealing && thread.priority() == Priority::Normal;
            if is_next {
                choice.own.arrived.push(thread);
            } else {
                self.keep(choice, thread);
            }
        }
    }

    /// Puts a thread whose home this is where it is taken soon.
    #[inline]
    fn keep(&self, choice: &Choice, thread: ThreadRef) {
        let (own, shared) = (&choice.own, self.shared);
        match (thread.priority(), shared.policy) {
            (Priority::Background, _) => own.background.push(thread, &shared.background),
            (_, Policy::WorkStealing) => own.unparked.push(thread),
            (_, Policy::SharedFifo | Policy::Affinity) => own.in_turn.push(thread, &shared.any),
        }
    }

    /// Whether there is anything that this worker could take.
    pub(super) fn sees_work(&self) -> bool {
        !self.home.inbox.is_empty() || self.sees_work_for_all()
    }

    /// Whether there is anything that any worker could take.
    pub(super) fn sees_work_for_all(&self) -> bool {
        let shared = self.shared;
        shared.stealable.iter().any(|of_one| !of_one.is_empty())
            || !shared.any.is_empty()
            || !shared.urgent.is_empty()
            || !shared.background.is_empty()
    }

    /// Puts a thread of this runtime, which is ready, where it is taken soon.
    #[inline]
    pub(super) fn queue(&self, thread: ThreadRef) {
        if let Some(home) = thread.home() {
            return self.send_home(home, thread);
        }
        match &self.choice {
            Some(choice)
                if self.shared.policy == Policy::WorkStealing && thread.priority() == Priority::Normal =>
            {
                if choice.newest_first.push(thread.block()).is_err() {
                    self.shared.any.push(thread);
                }
                self.shared.idle.wake_one();
            }
            // It runs them itself when it has unparked all that it has to.
            None if self.role == Role::Reactor && thread.priority() == Priority::Urgent => {
                self.shared.urgent.push(thread);
            }
            _ => self.shared.queue_for_any(thread),
        }
    }

    #[inline]
    fn send_home(&self, home: &'static Home, thread: ThreadRef) {
        if !ptr::eq(home, self.home) {
            return self.shared.send_home(home, thread);
        }
        match &self.choice {
            Some(choice) if self.shared.is_pinned => self.keep(choice, thread),
            // It looks there before it sleeps.
            _ => home.inbox.push(thread),
        }
    }

    /// Puts a thread that has yielded where the others come first.
    #[inline]
    pub(super) fn queue_last(&self, thread: ThreadRef) {
        let Some(choice) = &self.choice else { return self.queue(thread) };
        if self.shared.policy != Policy::WorkStealing || thread.priority() != Priority::Normal {
            return self.queue(thread);
        }
        if self.shared.is_pinned {
            return choice.own.yielded.push(thread);
        }
        if thread.home().is_some() {
            return self.queue(thread);
        }
        if choice.oldest_first.push(thread.block()).is_err() {
            self.shared.any.push(thread);
        }
        self.shared.idle.wake_one();
    }
}

impl Shared {
    /// Puts a thread of this runtime, which is ready, into a queue that does not belong to the calling LWP.
    pub(in crate::runtime) fn queue(&'static self, thread: ThreadRef) {
        match thread.home() {
            Some(home) => self.send_home(home, thread),
            None => self.queue_for_any(thread),
        }
    }

    /// Puts a thread, which is ready, where the LWP finds it that it keeps to, and wakes that.
    fn send_home(&'static self, home: &'static Home, thread: ThreadRef) {
        home.inbox.push(thread);
        match &home.bell {
            Bell::Worker(number) => self.idle.wake(*number),
            Bell::Reactor => self.reactor.notice_urgent(),
            Bell::Own(bell) => bell.ring(),
        }
    }

    fn queue_for_any(&self, thread: ThreadRef) {
        match thread.priority() {
            Priority::Background => self.background.push(thread),
            Priority::Urgent => self.urgent.push(thread),
            Priority::Normal => self.any.push(thread),
        }
        self.idle.wake_one();
    }
}
