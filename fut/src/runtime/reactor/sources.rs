//! Descriptors that user threads wait for.
//!
//! A descriptor is registered once, for both directions, edge-triggered: the kernel says when it becomes ready, and
//! never again until it has been used up. So a call is tried first, and only one that would block waits; no call but
//! the first costs a system call more than without this.
//!
//! 1. The reactor, on an event: sets the direction's `ready`, takes its waiters, and unparks them, in this order and
//!    under the lock.
//! 2. Whoever found that a call would block: under the lock, takes `ready` if it is set, and tries the call again;
//!    otherwise enters the waiters and parks. So an event between the call and the lock is not missed.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use polling::{Event, PollMode};

use crate::runtime::{WaitKind, WaitsFor, here, park, park_until, pool::Shared, thread::ThreadRef};

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The descriptors that are registered with a reactor.
#[derive(Default)]
pub(super) struct Sources(Mutex<Table>);

#[derive(Default)]
struct Table {
    entries: Vec<Option<Arc<Waiters>>>,
    free: Vec<usize>,
}

#[derive(Debug, Default)]
struct Waiters(Mutex<[Side; 2]>);

#[derive(Debug, Default)]
struct Side {
    ready: bool,
    waiters: Vec<ThreadRef>,
}

/// A descriptor that is registered with the reactor of a runtime, and what owns it.
#[derive(Debug)]
pub(crate) struct Source<T: AsFd> {
    /// Only absent while it is being dropped.
    io: Option<T>,
    registration: Registration,
}

struct Registration {
    shared: &'static Shared,
    key: usize,
    waiters: Arc<Waiters>,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registration({})", self.key)
    }
}

impl Sources {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) -> (usize, Arc<Waiters>) {
        let mut table = self.table();
        let waiters = Arc::<Waiters>::default();
        let key = table.free.pop().unwrap_or(table.entries.len());
        if key == table.entries.len() {
            table.entries.push(None);
        }
        table.entries[key] = Some(Arc::clone(&waiters));
        (key, waiters)
    }

    fn remove(&self, key: usize) {
        let mut table = self.table();
        table.entries[key] = None;
        table.free.push(key);
    }

    /// Rule 1.
    pub(super) fn unpark(&self, event: Event) {
        let waiters = self.table().entries.get(event.key).cloned().flatten();
        let Some(waiters) = waiters else { return };
        let mut sides = waiters.sides();
        let mut woken = Vec::new();
        for (direction, ready) in [(Direction::Read, event.readable), (Direction::Write, event.writable)] {
            if ready {
                let side = &mut sides[direction as usize];
                side.ready = true;
                woken.append(&mut side.waiters);
            }
        }
        drop(sides);
        woken.into_iter().for_each(ThreadRef::unpark);
    }
}

impl Waiters {
    fn sides(&self) -> MutexGuard<'_, [Side; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rule 2. Returns when the call is worth trying again, or at the deadline.
    fn wait(&self, direction: Direction, thread: ThreadRef, fd: BorrowedFd<'_>, deadline: Option<Instant>) {
        use std::os::fd::AsRawFd;

        let mut sides = self.sides();
        let side = &mut sides[direction as usize];
        if std::mem::take(&mut side.ready) {
            return;
        }
        side.waiters.push(thread);
        drop(sides);
        let on = WaitsFor { kind: WaitKind::Io, address: fd.as_raw_fd() as usize, holder: None };
        match deadline {
            Some(deadline) => park_until(&on, deadline),
            None => park(&on),
        }
        // Woken otherwise, it is still there.
        self.sides()[direction as usize].waiters.retain(|waiter| *waiter != thread);
    }
}

impl<T: AsFd> Source<T> {
    /// Registers `io`, which must be in non-blocking mode, with the reactor of the calling user thread.
    ///
    /// # Errors
    /// When the reactor cannot be started, or the kernel cannot wait for this kind of descriptor.
    ///
    /// # Panics
    /// Outside of a runtime; the message names `call`.
    #[track_caller]
    pub(crate) fn new(io: T, call: &'static str) -> io::Result<Source<T>> {
        let shared = here(call).shared();
        let poller = shared.reactor.start(shared)?;
        let (key, waiters) = shared.reactor.sources.add();
        let registration = Registration { shared, key, waiters };
        // SAFETY: `Source` deletes it from the poller before it drops `io`, and with that the descriptor.
        if let Err(error) = unsafe { poller.add_with_mode(&io.as_fd(), Event::all(key), PollMode::Edge) } {
            shared.reactor.sources.remove(key);
            return Err(error);
        }
        Ok(Source { io: Some(io), registration })
    }

    /// What owns the descriptor.
    pub(crate) fn io(&self) -> &T {
        self.io.as_ref().expect("it is only taken when the source is dropped")
    }

    /// Tries `call` until it does not say `WouldBlock`; between, the calling user thread is blocked.
    ///
    /// # Errors
    /// Those of `call`; `TimedOut` when `deadline` passes.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to block; the message names `name`.
    #[track_caller]
    pub(crate) fn retry<R>(
        &self,
        direction: Direction,
        deadline: Option<Instant>,
        name: &'static str,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            match call(self.io()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => return result,
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            self.registration.waiters.wait(direction, here(name), self.io().as_fd(), deadline);
        }
    }

    /// Takes it out of the reactor again.
    pub(crate) fn into_inner(mut self) -> T {
        let io = self.io.take().expect("it is only taken once");
        self.registration.forget(io.as_fd());
        io
    }
}

impl Registration {
    fn forget(&self, fd: BorrowedFd<'_>) {
        if let Some(poller) = self.shared.reactor.poller.get() {
            // Closing the descriptor would do it as well, unless it was duplicated.
            let _ = poller.delete(fd);
        }
        self.shared.reactor.sources.remove(self.key);
    }
}

impl<T: AsFd> Drop for Source<T> {
    fn drop(&mut self) {
        if let Some(io) = self.io.take() {
            self.registration.forget(io.as_fd());
        }
    }
}
