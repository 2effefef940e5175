//! Descriptors for which user threads wait.
//!
//! A descriptor is registered once, for both directions, edge-triggered: the kernel reports when it becomes ready, and
//! does not report it again until it has been drained. So a call is tried first, and waits only if it would block. Only
//! the first call costs an additional system call, for the registration.
//!
//! 1. A thread that polls a set (`reactor/mod.rs`) counts an event, and takes the waiters, under the lock of the
//!    direction. Then it unparks them all. Each waiter retries its call: an event does not reveal for how many of them
//!    it suffices.
//! 2. A thread reads the count before it makes a call. If the call would block, the thread takes the lock. If the count
//!    is unchanged, it enters the waiters and parks; otherwise it retries. So an event after the start of the call is
//!    never missed. (A flag that the first caller clears would not suffice. Of two callers that both found nothing
//!    before the event, the second would wait, although the first has left data for it.)
//! 3. A thread that returns from parking is no longer among the waiters, and retries its call before it checks its
//!    deadline. So data that arrives together with the deadline is not lost, and no event is consumed by a thread that
//!    gives up: the event has woken all others, too.
//! 4. Entries are never freed, but reused for other descriptors. An event of the old descriptor that was fetched before
//!    the reuse counts for the new one. Then a thread retries a call in vain, as after any late unpark.
//! 5. When the runtime has ended, no events are counted. All waiters are unparked, and their calls fail, as do calls
//!    that would wait later. These threads belong to other runtimes; those of the ended runtime no longer run.
//! 6. A descriptor is in one set at a time. Every set is served sooner or later, whatever thread waits (rule 5 of
//!    `reactor/mod.rs`). So the choice of the set decides only which thread unparks, and how soon. When a thread of a
//!    worker waits for a descriptor, it moves the descriptor to the set of that worker, unless another thread waits for
//!    it. In these cases the descriptor moves to the set of the reactor's LWP, and stays there: another thread waits
//!    for it; the caller is not on a worker, or is urgent; it has already moved [`MOST_MOVES`] times. Moving loses no
//!    event: the kernel reports what is ready when a descriptor is added to a set, and what the old set has reported is
//!    counted as well. A future that is polled is a waiter of another kind. There is at most one for each direction,
//!    the one polled last, as with tokio's sockets. It does not affect which set a descriptor is in.
//! 7. A read of a stream has emptied it if it returns fewer bytes than there is room for (epoll(7)), or if the kernel
//!    reports with it that none is left (TCP_INQ). As long as the count stays the same, the next read waits without
//!    making a call first. This does not apply once the kernel has reported the end of the stream, an error or urgent
//!    data: these are reported only once, or make reads short. If one of them is reported later, the count changes.

use std::{
    collections::HashMap,
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    epoll::Event,
    event_count::{Enter, EventCount},
    waiter::Waiter,
};
use crate::runtime::{
    WaitKind, WaitsFor, checkpoint, here, lwp, park, park_until, pool::Shared, thread::ThreadRef, yield_now,
};

/// The direction of transfer to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// No limit.
    None,
    /// This long from the start of the first wait.
    Within(Duration),
    /// Until this deadline.
    Until(Instant),
}

/// How often a descriptor moves between the sets of workers before it stays with the reactor.
const MOST_MOVES: u32 = 8;

/// The descriptors that are registered with a runtime.
#[derive(Default)]
pub(super) struct RegisteredFds(Mutex<Table>);

#[derive(Default)]
struct Table {
    entries: Vec<&'static Waiters>,
    free: Vec<&'static Waiters>,
    /// The descriptors of all sets. The kernel would refuse to register one twice only within the same set.
    registered: HashMap<RawFd, &'static Waiters>,
    ended: bool,
}

/// The waiters of one descriptor. Never freed (rule 4).
#[derive(Debug, Default)]
struct Waiters {
    sides: [EventCount<ThreadRef>; 2],
    /// The runtime has ended (rule 5).
    ended: AtomicBool,
    /// The count of the reading side for which nothing is left to read, or `NOT_DRAINED` (rule 7).
    drained: AtomicU64,
    /// The kernel has reported something after which rule 7 does not apply.
    always_tries: AtomicBool,
    /// Number of the set that the descriptor is in. Written under the lock of `moves`.
    set: AtomicUsize,
    moves: Mutex<Moves>,
}

const NOT_DRAINED: u64 = u64::MAX;

#[derive(Debug, Default)]
struct Moves {
    count: u32,
    /// The descriptor stays with the reactor (rule 6).
    stays: bool,
}

/// A descriptor that is registered with the reactor of a runtime, and its owner.
#[derive(Debug)]
pub(crate) struct RegisteredFd<T: AsFd> {
    /// `None` only while this value is being dropped.
    io: Option<T>,
    registration: Registration,
}

struct Registration {
    shared: &'static Shared,
    /// The descriptor that was registered: `AsFd` may return another one each time.
    fd: RawFd,
    waiters: &'static Waiters,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({:p})", ptr::from_ref(self.waiters))
    }
}

impl RegisteredFds {
    fn table(&self) -> MutexGuard<'_, Table> {
        // No code of the program runs under this lock, so the state is consistent even if it is poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an entry for `fd`, in set number `set`. There may be an entry with the same number already. `is_stale`
    /// decides whether that entry is of another descriptor, which was closed without being deregistered: its owner
    /// borrowed it, and was leaked.
    fn add(
        &self,
        fd: RawFd,
        set: usize,
        is_stale: impl FnOnce(&'static Waiters) -> bool,
    ) -> io::Result<&'static Waiters> {
        let mut table = self.table();
        if table.ended {
            return Err(reactor_ended());
        }
        if table.registered.get(&fd).is_some_and(|old| !is_stale(old)) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let waiters = table.free.pop().unwrap_or_else(|| {
            let new: &'static Waiters = Box::leak(Box::default());
            table.entries.push(new);
            new
        });
        table.registered.insert(fd, waiters);
        drop(table);
        waiters.drained.store(NOT_DRAINED, Ordering::Relaxed);
        waiters.always_tries.store(false, Ordering::Relaxed);
        *waiters.moves() = Moves::default();
        waiters.set.store(set, Ordering::Relaxed);
        Ok(waiters)
    }

    fn remove(&self, fd: RawFd, waiters: &'static Waiters) {
        let mut table = self.table();
        if table.registered.get(&fd).is_some_and(|registered| ptr::eq(*registered, waiters)) {
            table.registered.remove(&fd);
        }
        table.free.push(waiters);
    }

    /// Rule 5.
    pub(super) fn end(&self) {
        let mut table = self.table();
        table.ended = true;
        let entries = table.entries.clone();
        drop(table);
        for waiters in entries {
            // The locks in `count` and `enter` publish this store.
            waiters.ended.store(true, Ordering::Relaxed);
            waiters.sides.iter().for_each(|side| side.count(Waiter::wake));
        }
    }
}

/// Rule 1: counts an event, and calls `unpark` with each waiter.
pub(super) fn count(event: Event, mut unpark: impl FnMut(Waiter)) {
    const FAILED: i32 = libc::EPOLLERR | libc::EPOLLHUP;
    const READABLE: i32 = libc::EPOLLIN | libc::EPOLLPRI | libc::EPOLLRDHUP | FAILED;
    const WRITABLE: i32 = libc::EPOLLOUT | FAILED;
    const ALWAYS_TRY: i32 = libc::EPOLLPRI | libc::EPOLLRDHUP | FAILED;
    // SAFETY: the words in a set are addresses of entries, exposed by `Waiters::word`; entries are never freed.
    let waiters: &'static Waiters = unsafe { &*ptr::with_exposed_provenance(event.u64 as usize) };
    let events = event.events as i32;
    if events & ALWAYS_TRY != 0 {
        // Stored before the event is counted, because the count publishes it (rule 7).
        waiters.always_tries.store(true, Ordering::Relaxed);
    }
    for (direction, mask) in [(Direction::Read, READABLE), (Direction::Write, WRITABLE)] {
        if events & mask != 0 {
            waiters.side(direction).count(&mut unpark);
        }
    }
}

impl Waiters {
    fn side(&self, direction: Direction) -> &EventCount<ThreadRef> {
        &self.sides[direction as usize]
    }

    fn moves(&self) -> MutexGuard<'_, Moves> {
        // No code of the program runs under this lock, so the state is consistent even if it is poisoned.
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn word(&'static self) -> u64 {
        ptr::from_ref(self).expose_provenance() as u64
    }

    /// Whether the reading side was drained after event `seen`, which is the latest (rule 7).
    fn is_drained(&self, seen: u64) -> bool {
        self.drained.load(Ordering::Relaxed) == seen && !self.always_tries.load(Ordering::Relaxed)
    }

    /// Rule 5.
    fn check(&self) -> io::Result<()> {
        if self.ended.load(Ordering::Relaxed) { Err(reactor_ended()) } else { Ok(()) }
    }
}

pub(super) fn reactor_ended() -> io::Error {
    io::Error::other("the runtime in which this descriptor was registered has ended")
}

/// The error for a descriptor that the kernel refuses to wait for.
fn refused(error: &io::Error, fd: BorrowedFd<'_>, call: &str) -> io::Error {
    let fd = fd.as_raw_fd();
    let why = match error.raw_os_error() {
        Some(libc::EPERM) => {
            "the kernel cannot wait for this kind: regular files and directories are always ready; use \
             fut::blocking for calls on them"
        }
        Some(libc::EEXIST) => "it is already registered in this runtime; register a duplicate of it instead",
        Some(libc::ENOSPC) => "more descriptors than fs.epoll.max_user_watches allows",
        _ => return io::Error::new(error.kind(), format!("{call}: descriptor {fd}: {error}")),
    };
    let kind =
        if error.raw_os_error() == Some(libc::EPERM) { io::ErrorKind::Unsupported } else { error.kind() };
    io::Error::new(kind, format!("{call}: descriptor {fd}: {why}"))
}

impl<T: AsFd> RegisteredFd<T> {
    /// Registers `io`, which must be in non-blocking mode, with the reactor of the calling user thread.
    ///
    /// # Errors
    /// If the reactor has ended, or the kernel cannot wait for this kind of descriptor.
    ///
    /// # Panics
    /// Outside a runtime; the message names `call`.
    #[track_caller]
    pub(crate) fn new(io: T, call: &'static str) -> io::Result<RegisteredFd<T>> {
        let shared = here(call).shared();
        let set = lwp::poll_set(shared);
        let borrowed = io.as_fd();
        let fd = borrowed.as_raw_fd();
        let is_stale = |old: &'static Waiters| {
            // The kernel forgets a descriptor when it is closed, so it would accept its number once more. The lock
            // keeps the entry in its set meanwhile.
            let _moves = old.moves();
            let set = shared.reactor.set(old.set.load(Ordering::Relaxed));
            set.add(borrowed, old.word()).inspect(|()| set.remove(borrowed)).is_ok()
        };
        let registered = shared.reactor.sources.add(fd, set, is_stale).and_then(|waiters| {
            shared.reactor.use_set(set);
            let added = shared.reactor.set(set).add(borrowed, waiters.word());
            added.inspect_err(|_| shared.reactor.sources.remove(fd, waiters)).map(|()| waiters)
        });
        match registered {
            Ok(waiters) => {
                Ok(RegisteredFd { io: Some(io), registration: Registration { shared, fd, waiters } })
            }
            Err(error) => Err(refused(&error, borrowed, call)),
        }
    }

    /// The owner of the descriptor.
    pub(crate) fn io(&self) -> &T {
        self.io.as_ref().expect("it is only taken when the source is dropped")
    }

    /// Repeats `call` until it does not return `WouldBlock`. The calling user thread is blocked between the calls. This
    /// is a safe point.
    ///
    /// # Errors
    /// The errors of `call`; `TimedOut` at the limit.
    ///
    /// # Panics
    /// If it would block outside a runtime; the message names `name`.
    #[track_caller]
    pub(crate) fn retry<R>(
        &self,
        direction: Direction,
        limit: Limit,
        name: &'static str,
        call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.retry_unless_drained(direction, limit, name, |_| false, call)
    }

    /// Like [`retry`](RegisteredFd::retry), for reading a stream. `drains` decides whether the result of a call means
    /// that nothing is left to read (rule 7).
    #[track_caller]
    pub(crate) fn retry_unless_drained<R>(
        &self,
        direction: Direction,
        limit: Limit,
        name: &'static str,
        drains: impl Fn(&R) -> bool,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        checkpoint();
        let waiters = self.registration.waiters;
        let side = waiters.side(direction);
        let mut deadline = match limit {
            Limit::Until(deadline) => Some(deadline),
            Limit::None | Limit::Within(_) => None,
        };
        let (mut waited, mut has_left) = (false, false);
        loop {
            let seen = side.events();
            if waited || direction == Direction::Write || !waiters.is_drained(seen) {
                match call(self.io()) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    result => {
                        if result.as_ref().is_ok_and(&drains) {
                            waiters.drained.store(seen, Ordering::Relaxed);
                        }
                        return result;
                    }
                }
            }
            if let (Limit::Within(time), false) = (limit, waited) {
                // A deadline beyond the range of the clock means no limit.
                deadline = Instant::now().checked_add(time);
            }
            waited = true;
            if deadline.is_none_or(|deadline| Instant::now() < deadline) {
                self.wait(side, seen, deadline, name)?;
            } else if has_left {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            } else {
                // Otherwise a loop of calls with an expired time limit would keep the threads that it waits for off the
                // LWP.
                yield_now();
            }
            has_left = true;
        }
    }

    /// Like [`retry_unless_drained`](RegisteredFd::retry_unless_drained), for a future. Instead of blocking, it returns
    /// `Pending`, and the waker is woken at the next event. Of several futures that wait for one direction, only the
    /// one that was polled last is woken. This is not a safe point.
    #[cfg(feature = "compat")]
    pub(crate) fn poll_unless_drained<R>(
        &self,
        context: &std::task::Context<'_>,
        direction: Direction,
        drains: impl Fn(&R) -> bool,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> std::task::Poll<io::Result<R>> {
        use std::task::Poll;

        let waiters = self.registration.waiters;
        let side = waiters.side(direction);
        loop {
            let seen = side.events();
            if direction == Direction::Write || !waiters.is_drained(seen) {
                match call(self.io()) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    result => {
                        if result.as_ref().is_ok_and(&drains) {
                            waiters.drained.store(seen, Ordering::Relaxed);
                        }
                        return Poll::Ready(result);
                    }
                }
            }
            self.registration.place();
            if side.enter_task(context.waker(), seen) == Enter::Missed {
                continue;
            }
            // If the waker entered before the last count, it is woken. Otherwise, this call sees the flag.
            return match waiters.check() {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
    }

    /// Rule 2. Returns when the call should be retried, or at the deadline.
    #[track_caller]
    fn wait(
        &self,
        side: &EventCount<ThreadRef>,
        seen: u64,
        deadline: Option<Instant>,
        name: &'static str,
    ) -> io::Result<()> {
        let thread = here(name);
        let registration = &self.registration;
        registration.place();
        if side.enter(thread, seen) == Enter::Missed {
            return Ok(());
        }
        // If the thread entered before the last count, it is unparked. Otherwise, it sees the flag here.
        if let Err(error) = registration.waiters.check() {
            side.leave(&thread, seen);
            return Err(error);
        }
        let address = registration.fd as usize;
        let on = WaitsFor { kind: WaitKind::Io, address, holder: None, is_fed: false };
        match deadline {
            Some(deadline) => park_until(&on, deadline),
            None => park(&on),
        }
        side.leave(&thread, seen);
        Ok(())
    }

    /// Deregisters the descriptor.
    pub(crate) fn into_inner(mut self) -> T {
        let io = self.io.take().expect("it is only taken once");
        self.registration.forget();
        io
    }
}

impl Registration {
    /// Rule 6. Called when the calling thread is about to wait.
    #[inline]
    fn place(&self) {
        let wanted = lwp::poll_set(self.shared);
        if self.waiters.set.load(Ordering::Relaxed) == wanted && wanted != self.shared.reactor.own_set() {
            return;
        }
        self.place_slowly(wanted);
    }

    #[cold]
    fn place_slowly(&self, wanted: usize) {
        let (waiters, reactor) = (self.waiters, &self.shared.reactor);
        let mut moves = waiters.moves();
        let now = waiters.set.load(Ordering::Relaxed);
        if moves.stays || now == wanted && wanted != reactor.own_set() {
            return;
        }
        let someone_waits = waiters.sides.iter().any(EventCount::has_waiters);
        moves.stays = wanted == reactor.own_set() || someone_waits || moves.count >= MOST_MOVES;
        moves.count += 1;
        let to = if moves.stays { reactor.own_set() } else { wanted };
        if now == to {
            return;
        }
        reactor.use_set(to);
        let fd = self.fd();
        // First add it to the other set. If the kernel has no memory for that, it stays in the old one, which is served
        // as well.
        if reactor.set(to).add(fd, waiters.word()).is_ok() {
            reactor.set(now).remove(fd);
            waiters.set.store(to, Ordering::Relaxed);
        }
    }

    /// The descriptor. It is valid as long as its owner has not been dropped.
    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the owner lent the descriptor for as long as the owner itself is only shared, and it has been only
        // shared since. Both callers of this function are called by `RegisteredFd` while it holds the owner, or when
        // the owner has just been moved out of it.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    fn forget(&self) {
        self.waiters.sides.iter().for_each(EventCount::leave_task);
        // Closing the descriptor would also remove it, unless it was duplicated.
        self.shared.reactor.set(self.waiters.set.load(Ordering::Relaxed)).remove(self.fd());
        self.shared.reactor.sources.remove(self.fd, self.waiters);
    }
}

impl<T: AsFd> Drop for RegisteredFd<T> {
    fn drop(&mut self) {
        if self.io.is_some() {
            self.registration.forget();
        }
    }
}
