//! Descriptors for which user threads wait.
//!
//! A descriptor is registered once, for both directions, edge-triggered: the kernel reports when it becomes ready, and
//! not again until it has been drained. So a call is tried first, and waits only if it would block; only the first call
//! costs an additional system call, for the registration.
//!
//! 1. On an event, the reactor counts it and takes the waiters under the direction's lock; then it unparks them all.
//!    Each retries its call: an event does not reveal for how many of them it suffices.
//! 2. A thread reads the count before it makes a call. If the call would block, it takes the lock: if the count is
//!    unchanged, it enters the waiters, and parks; otherwise it retries. So an event after the start of the call is
//!    never missed. (A flag that the first caller clears would not suffice: of two callers that both found nothing
//!    before the event, the second would wait, although the first has left data for it.)
//! 3. A thread that returns from parking removes itself from the waiters and retries its call before it checks its
//!    deadline. So data that arrives together with the deadline is not lost, and no event is consumed by a thread that
//!    gives up: the event has woken all others, too.
//! 4. A key is reused for another descriptor as soon as its own is removed from the poller. An event of the old one
//!    that was fetched before that counts for the new one: a thread retries a call in vain, as after any late unpark.
//! 5. When the reactor has ended, no events are counted: all waiters are unparked, and their calls fail, as do those
//!    that would wait later. Those threads belong to other runtimes; its own no longer run.

use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use polling::{Event, PollMode};

use super::event_count::{Enter, EventCount};
use crate::runtime::{
    WaitKind, WaitsFor, checkpoint, here, park, park_until, pool::Shared, thread::ThreadRef,
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

/// The descriptors that are registered with a reactor.
#[derive(Default)]
pub(super) struct RegisteredFds(Mutex<Table>);

#[derive(Default)]
struct Table {
    entries: Vec<Option<Arc<Waiters>>>,
    free: Vec<usize>,
    ended: bool,
}

/// The waiters of one descriptor.
#[derive(Debug, Default)]
struct Waiters {
    sides: [EventCount<ThreadRef>; 2],
    /// The reactor has ended (rule 5).
    ended: AtomicBool,
}

/// A descriptor that is registered with the reactor of a runtime, and its owner.
#[derive(Debug)]
pub(crate) struct RegisteredFd<T: AsFd> {
    /// `None` only while it is being dropped.
    io: Option<T>,
    registration: Registration,
}

struct Registration {
    shared: &'static Shared,
    key: usize,
    waiters: Arc<Waiters>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({})", self.key)
    }
}

impl RegisteredFds {
    fn table(&self) -> MutexGuard<'_, Table> {
        // No code of the program runs under this lock, so the state is consistent even if it is poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) -> io::Result<(usize, Arc<Waiters>)> {
        let mut table = self.table();
        if table.ended {
            return Err(reactor_ended());
        }
        let waiters = Arc::<Waiters>::default();
        let key = table.free.pop().unwrap_or(table.entries.len());
        if key == table.entries.len() {
            table.entries.push(None);
        }
        table.entries[key] = Some(Arc::clone(&waiters));
        Ok((key, waiters))
    }

    fn remove(&self, key: usize) {
        let mut table = self.table();
        table.entries[key] = None;
        table.free.push(key);
    }

    /// Rule 1.
    pub(super) fn unpark(&self, event: Event) {
        let waiters = self.table().entries.get(event.key).cloned().flatten();
        // The descriptor was deregistered after the event was fetched.
        let Some(waiters) = waiters else { return };
        for (direction, ready) in [(Direction::Read, event.readable), (Direction::Write, event.writable)] {
            if ready {
                waiters.side(direction).count().into_iter().for_each(ThreadRef::unpark);
            }
        }
    }

    /// Rule 5.
    pub(super) fn end(&self) {
        let mut table = self.table();
        table.ended = true;
        let entries: Vec<_> = table.entries.iter().flatten().cloned().collect();
        drop(table);
        for waiters in entries {
            // Published by the locks in `count` and `enter`.
            waiters.ended.store(true, Ordering::Relaxed);
            waiters.sides.iter().flat_map(EventCount::count).for_each(ThreadRef::unpark);
        }
    }
}

impl Waiters {
    fn side(&self, direction: Direction) -> &EventCount<ThreadRef> {
        &self.sides[direction as usize]
    }

    /// Rule 5.
    fn check(&self) -> io::Result<()> {
        if self.ended.load(Ordering::Relaxed) { Err(reactor_ended()) } else { Ok(()) }
    }
}

fn reactor_ended() -> io::Error {
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
    /// When the reactor has ended, or the kernel cannot wait for this kind of descriptor.
    ///
    /// # Panics
    /// Outside a runtime; the message names `call`.
    #[track_caller]
    pub(crate) fn new(io: T, call: &'static str) -> io::Result<RegisteredFd<T>> {
        let shared = here(call).shared();
        let poller = shared.reactor.poller().ok_or_else(reactor_ended)?;
        let (key, waiters) = shared.reactor.sources.add()?;
        let registration = Registration { shared, key, waiters };
        // SAFETY: `RegisteredFd` removes it from the poller before it drops `io`, which closes the descriptor.
        if let Err(error) = unsafe { poller.add_with_mode(&io.as_fd(), Event::all(key), PollMode::Edge) } {
            shared.reactor.sources.remove(key);
            return Err(refused(&error, io.as_fd(), call));
        }
        Ok(RegisteredFd { io: Some(io), registration })
    }

    /// The owner of the descriptor.
    pub(crate) fn io(&self) -> &T {
        self.io.as_ref().expect("it is only taken when the source is dropped")
    }

    /// Repeats `call` until it does not return `WouldBlock`; between calls, the calling user thread is blocked. A safe
    /// point.
    ///
    /// # Errors
    /// Those of `call`; `TimedOut` at the limit.
    ///
    /// # Panics
    /// If it would block outside a runtime; the message names `name`.
    #[track_caller]
    pub(crate) fn retry<R>(
        &self,
        direction: Direction,
        limit: Limit,
        name: &'static str,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        checkpoint();
        let side = self.registration.waiters.side(direction);
        let mut deadline = match limit {
            Limit::Until(deadline) => Some(deadline),
            Limit::None | Limit::Within(_) => None,
        };
        let mut waited = false;
        loop {
            let seen = side.events();
            match call(self.io()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => return result,
            }
            if let (Limit::Within(time), false) = (limit, waited) {
                // A deadline beyond the range of the clock means no limit.
                deadline = Instant::now().checked_add(time);
            }
            waited = true;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            self.wait(side, seen, deadline, name)?;
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
        if side.enter(thread, seen) == Enter::Missed {
            return Ok(());
        }
        // If it entered before the reactor counted for the last time, it is unparked; otherwise, it sees this flag.
        if let Err(error) = self.registration.waiters.check() {
            side.leave(&thread);
            return Err(error);
        }
        let address = self.io().as_fd().as_raw_fd() as usize;
        let on = WaitsFor { kind: WaitKind::Io, address, holder: None };
        match deadline {
            Some(deadline) => park_until(&on, deadline),
            None => park(&on),
        }
        side.leave(&thread);
        Ok(())
    }

    /// Deregisters the descriptor.
    pub(crate) fn into_inner(mut self) -> T {
        let io = self.io.take().expect("it is only taken once");
        self.registration.forget(io.as_fd());
        io
    }
}

impl Registration {
    fn forget(&self, fd: BorrowedFd<'_>) {
        if let Some(poller) = self.shared.reactor.poller() {
            // Closing the descriptor would also remove it, unless it was duplicated.
            let _ = poller.delete(fd);
        }
        self.shared.reactor.sources.remove(self.key);
    }
}

impl<T: AsFd> Drop for RegisteredFd<T> {
    fn drop(&mut self) {
        if let Some(io) = self.io.take() {
            self.registration.forget(io.as_fd());
        }
    }
}
