//! The free permits, and the waiters.
//!
//! The word: `CLOSED`, `QUEUED`, and the free permits above them.
//!
//! 1. QUEUED is set while the queue is not empty. It is set and cleared under the lock of the queue. While it is set
//!    there are no free permits: released permits go to the first waiter, until it has all that it requested.
//! 2. So without QUEUED, permits are acquired and released through the word alone, and no waiter is overtaken.
//! 3. A waiter that times out releases the permits that it got so far. These may be enough for the waiters after it.
//! 4. Closing answers all waiters. The permits that they got so far become free.

use std::time::Instant;

use super::{
    super::{
        rt::{Parker, WaitKind, WaitsFor},
        spin_lock::SpinLock,
        wait_list::{Answer, WaitList, Waiter, Wakeups},
    },
    TryAcquireError,
};
use crate::model_check::{
    atomic::{AtomicUsize, Ordering},
    const_unless_loom,
};

const CLOSED: usize = 1;
const QUEUED: usize = 1 << 1;
/// Position of the permits above the flag bits.
const SHIFT: u32 = 2;

pub(super) const MAX_PERMITS: usize = usize::MAX >> 3;

pub(super) struct RawSemaphore {
    /// A separate word, because permits need more bits than the word of the spin lock has.
    word: AtomicUsize,
    queue: SpinLock<WaitList<Request>>,
}

/// The state of a waiter in the queue.
#[derive(Debug)]
struct Request {
    asked: usize,
    missing: usize,
}

impl RawSemaphore {
    const_unless_loom! {
        pub(super) fn new(permits: usize) -> RawSemaphore {
            RawSemaphore { word: AtomicUsize::new(permits << SHIFT), queue: SpinLock::new(WaitList::new()) }
        }
    }

    pub(super) fn available(&self) -> usize {
        self.word.load(Ordering::Relaxed) >> SHIFT
    }

    pub(super) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Acquires permits. The error `NoPermits` means that the deadline has passed.
    pub(super) fn acquire(&self, n: usize, deadline: Option<Instant>) -> Result<(), TryAcquireError> {
        match self.take(n) {
            Err(TryAcquireError::NoPermits) => self.wait_for(n, deadline),
            taken => taken,
        }
    }

    /// Takes at most `n` permits. Returns how many were taken.
    pub(super) fn take_up_to(&self, n: usize) -> usize {
        let take = |word: usize| Some(word - (n.min(word >> SHIFT) << SHIFT));
        // Acquire: as in `take`.
        match self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, take) {
            Ok(before) | Err(before) => n.min(before >> SHIFT),
        }
    }

    /// Rule 4.
    pub(super) fn close(&self) {
        let mut unused = 0;
        loop {
            let mut wakeups = Wakeups::new();
            let mut queue = self.queue.lock();
            self.word.fetch_or(CLOSED, Ordering::Relaxed);
            while let Some(request) = queue.front() {
                if wakeups.is_full() {
                    break;
                }
                unused += request.asked - request.missing;
                wakeups.push(queue.pop_front(Answer::Closed));
            }
            let done = queue.is_empty();
            if done {
                self.word.fetch_and(!QUEUED, Ordering::Relaxed);
            }
            drop(queue);
            wakeups.unpark_all();
            if done {
                return self.give(unused);
            }
        }
    }

    /// Rule 2.
    #[inline]
    pub(super) fn take(&self, n: usize) -> Result<(), TryAcquireError> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Err(TryAcquireError::Closed);
            }
            if word >> SHIFT < n {
                return Err(TryAcquireError::NoPermits);
            }
            let taken = word - (n << SHIFT);
            // Acquire: pairs with the Release in `give`; makes the writes of the permit's previous holder visible.
            match self.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    fn wait_for(&self, n: usize, deadline: Option<Instant>) -> Result<(), TryAcquireError> {
        let waiter = Waiter::new(Parker::here(), Request { asked: n, missing: n });
        if self.take_or_queue(n, &waiter)? {
            return Ok(());
        }
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind: WaitKind::Semaphore, address, holder: None, is_fed: false };
        let leave = || {
            if !self.leave_queue(&waiter) && waiter.answer() == Answer::Granted {
                self.give(n);
            }
        };
        loop {
            match waiter.wait(&on, deadline, &leave) {
                Some(Answer::Closed) => return Err(TryAcquireError::Closed),
                Some(_granted) => return Ok(()),
                None if self.leave_queue(&waiter) => return Err(TryAcquireError::NoPermits),
                // The waiter was answered before it could leave.
                None => {}
            }
        }
    }

    /// Takes the permits if enough are free. Otherwise takes those that are free, and queues the waiter for the rest.
    fn take_or_queue(&self, n: usize, waiter: &Waiter<Request>) -> Result<bool, TryAcquireError> {
        let mut queue = self.queue.lock();
        let change = |word: usize| match word {
            word if word & CLOSED != 0 => None,
            word if word >> SHIFT >= n => Some(word - (n << SHIFT)),
            _ => Some(QUEUED),
        };
        // Acquire: as in `take`.
        match self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, change) {
            Err(_closed) => return Err(TryAcquireError::Closed),
            Ok(before) if before >> SHIFT >= n => return Ok(true),
            Ok(before) => {
                // SAFETY: `wait_for` does not move the waiter until it was answered or has left the queue.
                unsafe { queue.push_back(waiter) };
                queue.payload(waiter).missing = n - (before >> SHIFT);
            }
        }
        Ok(false)
    }

    /// Gives permits to the waiters, and frees the rest.
    pub(super) fn give(&self, n: usize) {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & QUEUED == 0 {
            // Release: pairs with the Acquire in `take`.
            let more = with_more(word, n);
            match self.word.compare_exchange_weak(word, more, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        self.give_queued(n);
    }

    /// Rule 1.
    #[cold]
    fn give_queued(&self, mut n: usize) {
        loop {
            let mut wakeups = Wakeups::new();
            let mut queue = self.queue.lock();
            while let Some(first) = queue.front() {
                if wakeups.is_full() {
                    break;
                }
                let given = n.min(first.missing);
                n -= given;
                first.missing -= given;
                if first.missing > 0 {
                    break;
                }
                wakeups.push(queue.pop_front(Answer::Granted));
            }
            let done = queue.is_empty();
            if done {
                let free = |word: usize| Some(with_more(word & !QUEUED, n));
                // Release: as in `give`. The closure always returns `Some`, so this does not fail.
                let _before = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, free);
            }
            drop(queue);
            wakeups.unpark_all();
            if done || n == 0 {
                return;
            }
        }
    }

    /// Removes a waiter at its deadline. `false` if it was answered meanwhile.
    fn leave_queue(&self, waiter: &Waiter<Request>) -> bool {
        let mut queue = self.queue.lock();
        if !queue.remove(waiter) {
            return false;
        }
        let request = queue.payload(waiter);
        let given = request.asked - request.missing;
        if queue.is_empty() {
            self.word.fetch_and(!QUEUED, Ordering::Relaxed);
        }
        drop(queue);
        // Rule 3.
        self.give(given);
        true
    }
}

/// The word with `n` more permits, up to the maximum. It does not panic, because waiters may still have to be woken.
fn with_more(word: usize, n: usize) -> usize {
    let more = n.min(MAX_PERMITS - (word >> SHIFT));
    word + (more << SHIFT)
}
