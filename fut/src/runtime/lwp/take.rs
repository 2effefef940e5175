//! Which thread an LWP takes next, and into which queue a thread that becomes ready is put.
//!
//! Work stealing: an LWP takes the threads that it has made ready (new or unparked) newest first. The newest has its
//! data in the cache, and a tree of threads is walked depth first, with few stacks in use. Threads that have yielded
//! come after those, oldest first. Other LWPs steal the oldest thread, which in a tree is the root of the largest part.
//! In a migrating runtime, the thread that was unparked last comes before all others, and other LWPs leave it alone for
//! some time (`ready/next.rs`).
//!
//! To avoid starvation, at every [`FAIR_TURN`]th turn the oldest thread of another queue comes first. Threads that were
//! made ready by LWPs that are not workers, such as the reactor, are in the shared queue. That queue comes first at
//! every [`ANY_TURN`]th turn of threads that have yielded.
//!
//! Threads that the LWP has made ready by polling run in the order of their events. In a pinned runtime they are
//! treated like those from the inbox; in a migrating one they come after those that have yielded, where others can
//! steal them.
//!
//! A thread with a home runs only on that LWP. In a pinned runtime, its first dispatch sets its home. If that LWP makes
//! the thread ready, it goes to the LWP's own queues, which are not atomic. If another thread makes it ready, it goes
//! to the LWP's inbox, which is emptied into the own queues before each choice. So other LWPs can take only threads
//! that have not begun, and are woken only for these. The order is: first the threads from the inbox, in the order of
//! their arrival (none of the LWP's own threads is newer); then the unparked ones; then new ones, which have no stacks
//! yet. Otherwise, the order is the same.
//!
//! In a migrating runtime, a thread has a home only if it leaves its LWP while it unwinds, and only until it comes
//! back. This is rare. Such threads come at a fair turn, or when the shared queue is served.

use std::{
    cell::Cell,
    ptr,
    sync::atomic::{Ordering, fence},
};

use super::{Lwp, Role, watch::Seen};
use crate::runtime::{
    pool::{Policy, Priority, Shared},
    ready::{Home, NextOwner, NextThief, OwnQueue, OwnQueues, Owner, Thief, Wakeup, next},
    thread::{ThreadRef, UserThread, prefetch, record_ready},
};

/// Every how many turns a worker checks whether it is time to poll. Turns may be long.
const POLL_TURN: u32 = 8;
/// Every how many turns the oldest of another queue comes first. A prime, to avoid resonance with periodic behaviour of
/// programs.
const FAIR_TURN: u32 = 61;
/// Every how many turns of threads that have yielded the shared queue comes first. Checking it costs 0.2 ns of the 9.8
/// ns of a yield (1000 threads, one LWP; at every second turn 0.4 ns).
const ANY_TURN: u32 = 4;
/// Every how many turns a background thread that is pinned to this LWP comes first. Idle LWPs cannot run it. So without
/// this, a thread that yields until the background thread has done something would wait for ever.
const BACKGROUND_TURN: u32 = 509;
/// Capacity of each of a worker's deques. Threads that do not fit go to the shared queue.
const DEQUE_LEN: usize = 1024;

/// The ready queues of a worker, searched before all others.
pub(in crate::runtime) struct Choice {
    number: usize,
    /// The thread that was woken last. Not used in a pinned runtime, nor with only one worker.
    next: NextOwner<UserThread>,
    pub(super) seen: Seen,
    /// New threads, and unparked ones that may migrate: the worker takes the newest, thieves the oldest.
    newest_first: Owner<UserThread>,
    /// Threads that have yielded and may migrate: the worker and thieves take the oldest.
    oldest_first: Owner<UserThread>,
    /// Threads whose home is this LWP.
    own: OwnQueues,
    /// Number of threads taken so far. It determines the turns at which another queue comes first.
    turns: Cell<u32>,
}

/// The queues of a worker from which others may steal.
pub(in crate::runtime) struct Stealable {
    pub(super) next: NextThief<UserThread>,
    newest_first: Thief<UserThread>,
    oldest_first: Thief<UserThread>,
}

impl Choice {
    /// Makes the queues of `workers` workers, and the ends from which they may steal.
    pub(in crate::runtime) fn of_workers(workers: usize) -> (Vec<Choice>, Box<[Stealable]>) {
        let choice = |number, next, newest_first, oldest_first| {
            let (own, turns) = (OwnQueues::default(), Cell::new(0));
            Choice { number, next, seen: Seen::new(workers), newest_first, oldest_first, own, turns }
        };
        if workers == 1 {
            let (newest, oldest) = (Owner::alone(DEQUE_LEN), Owner::alone(DEQUE_LEN));
            return (vec![choice(0, next().0, newest, oldest)], Box::default());
        }
        let (choices, stealable): (Vec<_>, Vec<_>) = (0..workers)
            .map(|number| {
                let (next, newest, oldest) = (next(), Owner::new(DEQUE_LEN), Owner::new(DEQUE_LEN));
                let stealable = Stealable { next: next.1, newest_first: newest.1, oldest_first: oldest.1 };
                (choice(number, next.0, newest.0, oldest.0), stealable)
            })
            .unzip();
        (choices, stealable.into())
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Number of choices so far, including this one.
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

    /// Whether there is no thread that others may take at once.
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.newest_first.is_empty() && self.oldest_first.is_empty()
    }
}

/// Prefetches the threads that the LWP takes next from this queue.
#[inline]
fn prefetch_after(queue: &OwnQueue) {
    let block = |after| queue.hint(after).map_or(ptr::null(), |thread| ptr::from_ref(thread.block()));
    prefetch(block(1), block(0));
}

impl Lwp {
    /// The next thread from any queue; a worker also steals.
    #[inline]
    pub(super) fn take_next(&self) -> Option<ThreadRef> {
        match &self.choice {
            Some(choice) if !self.shared.is_shut_down() => self.take_any(choice),
            _ => None,
        }
    }

    /// Like [`take_next`](Lwp::take_next), for an idle worker.
    #[inline]
    pub(super) fn take_any(&self, choice: &Choice) -> Option<ThreadRef> {
        self.take_local(choice).or_else(|| self.take_elsewhere(choice))
    }

    /// The next thread in this LWP's queues or the shared queue.
    #[inline]
    fn take_local(&self, choice: &Choice) -> Option<ThreadRef> {
        let shared = self.shared;
        let turn = choice.next_turn();
        if turn.is_multiple_of(POLL_TURN) && shared.reactor.is_used() {
            self.poll_in_turn();
        }
        if shared.is_pinned {
            if !self.home.inbox.is_empty() {
                self.empty_inbox(choice);
            }
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
            Policy::WorkStealing => self.take_migrating(choice, turn),
            Policy::SharedFifo | Policy::Affinity => self.home.inbox.pop().or_else(|| shared.any.pop()),
        }
    }

    /// The next thread when `thread` yields. Does not steal: if no thread is ready here, `thread` itself continues.
    #[inline]
    pub(super) fn take_for_yield(&self, thread: ThreadRef) -> Option<ThreadRef> {
        let choice = self.choice.as_ref().filter(|_| !self.shared.is_shut_down())?;
        let next = self.take_local(choice);
        if next.is_none() && thread.priority() == Priority::Background {
            return choice.own.background.take_oldest(&self.shared.background);
        }
        next
    }

    /// The next thread in a migrating runtime.
    #[inline]
    fn take_migrating(&self, choice: &Choice, turn: u32) -> Option<ThreadRef> {
        let any = || self.home.inbox.pop().or_else(|| self.shared.any.pop());
        if turn.is_multiple_of(FAIR_TURN)
            && let Some(thread) = self.take_fairly(choice, turn / FAIR_TURN)
        {
            return Some(thread);
        }
        choice.next.take().or_else(|| choice.newest_first.take_newest()).map(ThreadRef::of_block).or_else(
            || {
                // Without this, a thread that the reactor has made ready would wait for a fair turn.
                if turn.is_multiple_of(ANY_TURN)
                    && let Some(thread) = any()
                {
                    return Some(thread);
                }
                if choice.oldest_first.is_empty() {
                    return any();
                }
                let oldest = choice.oldest_first.take_oldest().map(ThreadRef::of_block);
                self.share_batch();
                prefetch(choice.oldest_first.hint(1), choice.oldest_first.hint(0));
                oldest.or_else(any)
            },
        )
    }

    /// The next thread in a pinned runtime.
    #[inline]
    fn take_begun_or_new(&self, choice: &Choice, turn: u32) -> Option<ThreadRef> {
        let own = &choice.own;
        if turn.is_multiple_of(FAIR_TURN)
            && let Some(thread) = self.take_fairly(choice, turn / FAIR_TURN)
        {
            return Some(thread);
        }
        if let Some(oldest) = own.arrived.take_oldest() {
            prefetch_after(&own.arrived);
            return Some(oldest);
        }
        let newest = own.unparked.take_newest();
        newest.or_else(|| choice.newest_first.take_newest().map(ThreadRef::of_block)).or_else(|| {
            if turn.is_multiple_of(ANY_TURN)
                && let Some(thread) = self.shared.any.pop()
            {
                return Some(thread);
            }
            let Some(oldest) = own.yielded.take_oldest() else { return self.shared.any.pop() };
            prefetch_after(&own.yielded);
            Some(oldest)
        })
    }

    #[cold]
    fn take_fairly(&self, choice: &Choice, round: u32) -> Option<ThreadRef> {
        match round % 3 {
            0 => self.home.inbox.pop().or_else(|| self.shared.any.pop()),
            1 if self.shared.is_pinned => choice.own.yielded.take_oldest(),
            1 => choice.oldest_first.take_oldest().map(ThreadRef::of_block),
            // In a pinned runtime there are two such queues, which are served in turn.
            _ if round.is_multiple_of(2) && self.shared.is_pinned => choice.own.unparked.take_oldest(),
            _ => choice.newest_first.take_oldest().map(ThreadRef::of_block),
        }
    }

    #[cold]
    fn take_elsewhere(&self, choice: &Choice) -> Option<ThreadRef> {
        let stealable = &self.shared.stealable;
        for step in 1..stealable.len() {
            // Each worker begins with its neighbour, so that not all workers try the same one.
            let stolen = stealable[(choice.number + step) % stealable.len()].steal();
            if stolen.is_some() {
                return stolen;
            }
        }
        choice.own.background.take_oldest(&self.shared.background)
    }

    /// Moves the threads of the inbox to the LWP's own queues, in a pinned runtime.
    #[cold]
    fn empty_inbox(&self, choice: &Choice) {
        // Only the threads that are in the inbox now, not those that arrive meanwhile.
        for thread in (0..self.home.inbox.len()).map_while(|_| self.home.inbox.pop()) {
            let is_next = self.shared.policy == Policy::WorkStealing && thread.priority() == Priority::Normal;
            if is_next {
                choice.own.arrived.push(thread);
            } else {
                self.keep(choice, thread);
            }
        }
    }

    /// Queues a thread whose home is this LWP, in the queue for its priority.
    #[inline]
    fn keep(&self, choice: &Choice, thread: ThreadRef) {
        let (own, shared) = (&choice.own, self.shared);
        match (thread.priority(), shared.policy) {
            (Priority::Background, _) => own.background.push(thread, &shared.background),
            (_, Policy::WorkStealing) => own.unparked.push(thread),
            (_, Policy::SharedFifo | Policy::Affinity) => own.in_turn.push(thread, &shared.any),
        }
    }

    /// Whether there is a thread that this worker could take.
    pub(super) fn sees_work(&self) -> bool {
        !self.home.inbox.is_empty() || self.sees_work_for_all()
    }

    /// Whether there is a thread that any worker could take at once.
    pub(super) fn sees_work_for_all(&self) -> bool {
        let shared = self.shared;
        shared.has_stealable()
            || !shared.any.is_empty()
            || !shared.urgent.is_empty()
            || !shared.background.is_empty()
    }

    /// Queues a thread of this runtime that was woken here, mostly by the mounted thread. In a migrating runtime it
    /// runs next.
    #[inline]
    pub(super) fn queue_woken(&self, thread: ThreadRef) {
        let shared = self.shared;
        let Some(choice) = &self.choice else { return self.queue(thread) };
        let runs_next = !shared.stealable.is_empty()
            && !shared.is_pinned
            && shared.policy == Policy::WorkStealing
            && thread.priority() == Priority::Normal
            && thread.home().is_none();
        if !runs_next {
            return self.queue(thread);
        }
        match choice.next.put(thread.block()) {
            None => shared.idle.wake_for_next(),
            Some(before) => self.queue(ThreadRef::of_block(before)),
        }
    }

    /// Queues a ready thread of this runtime before those that have yielded.
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
            // The reactor runs urgent threads itself, after it has unparked all due threads.
            None if self.role == Role::Reactor && thread.priority() == Priority::Urgent => {
                self.shared.urgent.push(thread);
            }
            _ => self.shared.queue_for_any(thread),
        }
    }

    /// Queues a thread that this worker has made ready by polling, after those that are queued there. No LWP is woken,
    /// unless the queue is full.
    #[inline]
    pub(super) fn queue_polled(&self, thread: ThreadRef) {
        let shared = self.shared;
        let is_plain = thread.priority() == Priority::Normal && shared.policy == Policy::WorkStealing;
        match (&self.choice, thread.home()) {
            (Some(choice), Some(home)) if shared.is_pinned && ptr::eq(home, self.home) => {
                record_ready(thread);
                if is_plain {
                    choice.own.arrived.push(thread);
                } else {
                    self.keep(choice, thread);
                }
            }
            (Some(choice), None) if is_plain && ptr::eq(thread.shared(), shared) => {
                record_ready(thread);
                if choice.oldest_first.push(thread.block()).is_err() {
                    shared.any.push(thread);
                    shared.idle.wake_one();
                }
            }
            _ => super::make_ready(thread),
        }
    }

    /// The current end of the queue into which polling puts threads.
    pub(super) fn end_of_polled(&self) -> usize {
        let Some(choice) = &self.choice else { return 0 };
        if self.shared.is_pinned { choice.own.arrived.end() } else { choice.oldest_first.end() }
    }

    /// Whether some threads before position `end` of that queue have not been taken. `end` is where the last batch of
    /// [`queue_polled`](Lwp::queue_polled) ended.
    pub(super) fn has_polled(&self, end: usize) -> bool {
        let Some(choice) = &self.choice else { return false };
        let has_taken = if self.shared.is_pinned {
            choice.own.arrived.has_taken(end)
        } else {
            choice.oldest_first.has_taken(end)
        };
        !has_taken
    }

    #[inline]
    fn send_home(&self, home: &'static Home, thread: ThreadRef) {
        if !ptr::eq(home, self.home) {
            return self.shared.send_home(home, thread);
        }
        match &self.choice {
            Some(choice) if self.shared.is_pinned => self.keep(choice, thread),
            // The LWP checks its inbox before it sleeps.
            _ => home.inbox.push(thread),
        }
    }

    /// Queues a thread that has yielded, after the others.
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
    /// Moves the threads that others may steal from this worker to the shared queue. It moves at most as many as the
    /// worker's deques hold, because the worker may spawn more meanwhile.
    pub(in crate::runtime) fn share_queue_of(&'static self, worker: usize) {
        let Some(queues) = self.stealable.get(worker) else { return };
        let next = queues.next.steal().map(ThreadRef::of_block);
        let queued = (0..2 * DEQUE_LEN).map_while(|_| queues.steal());
        next.into_iter().chain(queued).for_each(|thread| self.queue_for_any(thread));
    }

    /// Queues a ready thread of this runtime in a queue that does not belong to the calling LWP.
    pub(in crate::runtime) fn queue(&'static self, thread: ThreadRef) {
        match thread.home() {
            Some(home) => self.send_home(home, thread),
            None => self.queue_for_any(thread),
        }
    }

    /// Puts a ready thread into the inbox of the LWP to which it is pinned, and wakes that LWP.
    fn send_home(&'static self, home: &'static Home, thread: ThreadRef) {
        home.inbox.push(thread);
        // Rule 10 of `ready/idle/mod.rs`.
        fence(Ordering::SeqCst);
        match &home.wakeup {
            Wakeup::Worker(number) => self.idle.wake(*number),
            Wakeup::Reactor => self.reactor.notice_urgent(),
            Wakeup::Own(wakeup) => wakeup.signal(),
        }
    }

    fn queue_for_any(&self, thread: ThreadRef) {
        match thread.priority() {
            Priority::Background => self.background.push(thread),
            Priority::Urgent => self.urgent.push(thread),
            Priority::Normal => self.any.push(thread),
        }
        // Rule 10 of `ready/idle/mod.rs`.
        fence(Ordering::SeqCst);
        self.idle.wake_one();
    }
}
