//! Counted permits, for user threads.
//!
//! The word: `CLOSED`, `QUEUED`, and the free permits above them.
//!
//! 1. QUEUED is set while the queue is not empty; it is set and cleared under the lock of the queue. While it is set
//!    there are no free permits: all that come go to the first waiter, until it has what it asked for.
//! 2. So without QUEUED permits are taken and given by the word alone, and nobody overtakes one who waits.
//! 3. Who gives up at its deadline gives back what it was given so far, which may be enough for those behind it.
//! 4. Closing tells all who wait; what they were given so far becomes free.

mod permit;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

pub use permit::{AcquireError, OwnedSemaphorePermit, SemaphorePermit, TryAcquireError};

use super::{
    deadline_after,
    rt::{WaitKind, WaitsFor, checkpoint, here},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, Wakeups},
};
use crate::model_check::{
    atomic::{AtomicUsize, Ordering},
    const_unless_loom,
};

const CLOSED: usize = 1;
const QUEUED: usize = 1 << 1;
/// Permits stand above the bits.
const SHIFT: u32 = 2;

/// A number of permits that user threads take and give back, as `tokio::sync::Semaphore`.
///
/// First come, first served: one who asks for many is not overtaken by those who ask for few.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use fut::sync::Semaphore;
///
/// static AT_ONCE: Semaphore = Semaphore::new(2);
///
/// let requests: Vec<_> = (0..10)
///     .map(|n| {
///         fut::spawn(move || {
///             let _permit = AT_ONCE.acquire().expect("nobody closes it");
///             n // two at a time come here
///         })
///     })
///     .collect();
/// let sum: u32 = requests.into_iter().map(|request| request.join().unwrap()).sum();
/// assert_eq!((sum, AT_ONCE.available_permits()), (45, 2));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Semaphore {
    /// The word of this file; permits need more room than the lock's has.
    word: AtomicUsize,
    queue: SpinLock<WaitList<Request>>,
}

/// What the queue knows of a waiter.
#[derive(Debug)]
struct Request {
    asked: usize,
    missing: usize,
}

impl Semaphore {
    /// The most permits there can be.
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    const_unless_loom! {
        /// So many permits.
        ///
        /// # Panics
        /// If that is more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
        pub fn new(permits: usize) -> Semaphore {
            assert!(permits <= Semaphore::MAX_PERMITS, "more permits than Semaphore::MAX_PERMITS");
            Semaphore { word: AtomicUsize::new(permits << SHIFT), queue: SpinLock::new(WaitList::new()) }
        }
    }

    /// How many are free now.
    pub fn available_permits(&self) -> usize {
        self.word.load(Ordering::Relaxed) >> SHIFT
    }

    /// Waits for a permit. It is given back when it is dropped.
    ///
    /// # Errors
    /// When the semaphore is closed, before or meanwhile.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.acquire_before(1, None, "fut::sync::Semaphore::acquire").map_err(AcquireError::closed)
    }

    /// Waits for that many permits at once.
    ///
    /// # Errors
    /// When the semaphore is closed, before or meanwhile.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.acquire_before(n, None, "fut::sync::Semaphore::acquire_many").map_err(AcquireError::closed)
    }

    /// Takes a permit, if one is free.
    ///
    /// # Errors
    /// When none is, or the semaphore is closed.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes that many permits, if they are free.
    ///
    /// # Errors
    /// When they are not, or the semaphore is closed.
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.take(n as usize)?;
        Ok(SemaphorePermit::new(self, n))
    }

    /// Waits for a permit, but no longer than this.
    ///
    /// # Errors
    /// `NoPermits` when the time is over; `Closed` when the semaphore is closed, before or meanwhile.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn try_acquire_for(&self, timeout: Duration) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.acquire_before(1, deadline_after(timeout), "fut::sync::Semaphore::try_acquire_for")
    }

    /// Waits for a permit, but not past `deadline`.
    ///
    /// # Errors
    /// As [`try_acquire_for`](Semaphore::try_acquire_for).
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn try_acquire_until(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.acquire_before(1, Some(deadline), "fut::sync::Semaphore::try_acquire_until")
    }

    /// Waits for that many permits at once, but no longer than this.
    ///
    /// # Errors
    /// As [`try_acquire_for`](Semaphore::try_acquire_for).
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn try_acquire_many_for(
        &self,
        n: u32,
        timeout: Duration,
    ) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.acquire_before(n, deadline_after(timeout), "fut::sync::Semaphore::try_acquire_many_for")
    }

    /// As [`acquire`](Semaphore::acquire); the permit keeps the semaphore alive, and may go anywhere.
    ///
    /// # Errors
    /// When the semaphore is closed, before or meanwhile.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_many_owned(1)
    }

    /// As [`acquire_many`](Semaphore::acquire_many), likewise.
    ///
    /// # Errors
    /// When the semaphore is closed, before or meanwhile.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_before(n, None, "fut::sync::Semaphore::acquire_many_owned")
            .map_err(AcquireError::closed)?
            .forget();
        Ok(OwnedSemaphorePermit::new(self, n))
    }

    /// As [`try_acquire`](Semaphore::try_acquire), likewise.
    ///
    /// # Errors
    /// When none is free, or the semaphore is closed.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// As [`try_acquire_many`](Semaphore::try_acquire_many), likewise.
    ///
    /// # Errors
    /// When they are not free, or the semaphore is closed.
    pub fn try_acquire_many_owned(self: Arc<Self>, n: u32) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.take(n as usize)?;
        Ok(OwnedSemaphorePermit::new(self, n))
    }

    /// Adds permits, for those who wait first.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    pub fn add_permits(&self, n: usize) {
        let room = Semaphore::MAX_PERMITS - self.available_permits();
        assert!(n <= room, "more permits than Semaphore::MAX_PERMITS");
        self.give(n);
    }

    /// Takes up to that many free permits away for good, and says how many those were.
    pub fn forget_permits(&self, n: usize) -> usize {
        let take = |word: usize| Some(word - (n.min(word >> SHIFT) << SHIFT));
        // Acquire: as in `take`.
        match self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, take) {
            Ok(before) | Err(before) => n.min(before >> SHIFT),
        }
    }

    /// From now on nobody gets a permit. Those who wait are told.
    pub fn close(&self) {
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

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    fn acquire_before(
        &self,
        n: u32,
        deadline: Option<Instant>,
        call: &'static str,
    ) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        checkpoint();
        match self.take(n as usize) {
            Err(TryAcquireError::NoPermits) => self.wait_for(n as usize, deadline, call)?,
            taken => taken?,
        }
        Ok(SemaphorePermit::new(self, n))
    }

    /// Rule 2.
    #[inline]
    fn take(&self, n: usize) -> Result<(), TryAcquireError> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Err(TryAcquireError::Closed);
            }
            if word >> SHIFT < n {
                return Err(TryAcquireError::NoPermits);
            }
            let taken = word - (n << SHIFT);
            // Acquire: pairs with the Release in `give`; what was done with the permit before is seen.
            match self.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    fn wait_for(
        &self,
        n: usize,
        deadline: Option<Instant>,
        call: &'static str,
    ) -> Result<(), TryAcquireError> {
        let waiter = Waiter::new(here(call), Request { asked: n, missing: n });
        if self.take_or_queue(n, &waiter)? {
            return Ok(());
        }
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind: WaitKind::Semaphore, address, holder: None };
        loop {
            match waiter.wait(&on, deadline) {
                Some(Answer::Closed) => return Err(TryAcquireError::Closed),
                Some(_granted) => return Ok(()),
                None if self.leave_queue(&waiter) => return Err(TryAcquireError::NoPermits),
                // It was answered just before it could leave.
                None => {}
            }
        }
    }

    /// Takes the permits; otherwise it takes those there are, and the waiter is in the queue for the rest.
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
                // SAFETY: `wait_for` keeps the waiter where it is until it was answered or has left the queue.
                unsafe { queue.push_back(waiter) };
                queue.payload(waiter).missing = n - (before >> SHIFT);
            }
        }
        Ok(false)
    }

    /// Gives permits to those who wait, and then to all.
    fn give(&self, n: usize) {
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
                // Release: as in `give`. Nothing to look at: the closure never refuses.
                let _before = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, free);
            }
            drop(queue);
            wakeups.unpark_all();
            if done || n == 0 {
                return;
            }
        }
    }

    /// A waiter gives up at its deadline. `false` if it was answered meanwhile.
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

/// The word with `n` permits more, or with as many as there can be: it does not panic where others wait to be woken.
fn with_more(word: usize, n: usize) -> usize {
    let more = n.min(Semaphore::MAX_PERMITS - (word >> SHIFT));
    word + (more << SHIFT)
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("permits", &self.available_permits())
            .field("closed", &self.is_closed())
            .finish()
    }
}
