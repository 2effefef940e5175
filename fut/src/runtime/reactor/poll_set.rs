//! The descriptors and timers that are served together: by one worker when it has no ready thread, by all workers of a
//! migrating runtime in turns, or by the reactor's own LWP. Rules 1 to 6 are at the head of `reactor/mod.rs`.
//!
//! A child process made by `fork` or `clone` has the descriptor of its parent's epoll. If the child removed a
//! descriptor there, the parent would get no more events of it. If the child fetched an event, the parent would miss
//! it. If the child added a descriptor, the parent would get an address of another process. So only the process that
//! made a set changes it or fetches from it. An idle LWP of a child sleeps on its condition.

use std::{
    io,
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    epoll::Epoll,
    process::Process,
    registered_fds,
    timers::{Timer, Timers},
    waiter::Waiter,
};
use crate::runtime::ready::Bell;

/// Longest wait in a child process, which does not notice rings of the bell.
const INHERITED: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(in crate::runtime) struct PollSet {
    /// `None` when the runtime has ended; then the descriptors of the set are closed.
    epoll: Mutex<Option<Arc<Epoll>>>,
    /// The process that made the set.
    owner: Process,
    timers: Timers,
    /// Whether a thread waits in the kernel for this set, or is about to.
    has_poller: AtomicBool,
    /// Number of polls so far. It does not change while no thread serves this set.
    polls: AtomicU64,
}

impl PollSet {
    /// A set whose timers may be late by `slack`.
    ///
    /// # Errors
    /// If no descriptors are available.
    pub(super) fn new(slack: Duration) -> io::Result<PollSet> {
        Ok(PollSet {
            epoll: Mutex::new(Some(Arc::new(Epoll::new()?))),
            owner: Process::this(),
            timers: Timers::new(slack),
            has_poller: AtomicBool::new(false),
            polls: AtomicU64::new(0),
        })
    }

    /// The epoll of this set; `None` when the runtime has ended. A thread keeps it while it polls, so that the
    /// descriptors stay open.
    pub(in crate::runtime) fn epoll(&self) -> Option<Arc<Epoll>> {
        self.epoll.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn end(&self) {
        let epoll = self.epoll.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(epoll);
    }

    /// Whether the caller is in a process other than the one that made this set.
    fn is_inherited(&self) -> bool {
        Process::this() != self.owner
    }

    pub(super) fn add(&self, fd: BorrowedFd<'_>, word: u64) -> io::Result<()> {
        if self.is_inherited() {
            return Err(io::Error::other(
                "this runtime belongs to the process from which this one was forked",
            ));
        }
        self.epoll().ok_or_else(registered_fds::reactor_ended)?.add(fd, word)
    }

    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        if let Some(epoll) = self.epoll().filter(|_| !self.is_inherited()) {
            // This fails only if other code has closed the descriptor.
            let _ = epoll.remove(fd);
        }
    }

    /// Becomes the one thread that waits in the kernel for this set. `false` if another thread does, or in a child
    /// process.
    pub(in crate::runtime) fn begin_wait(&self) -> bool {
        // AcqRel: orders one poller after the other; pairs with `end_wait`.
        !self.is_inherited() && !self.has_poller.swap(true, Ordering::AcqRel)
    }

    pub(in crate::runtime) fn end_wait(&self) {
        self.has_poller.swap(false, Ordering::AcqRel);
    }

    pub(super) fn has_poller(&self) -> bool {
        self.has_poller.load(Ordering::Relaxed)
    }

    pub(super) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Waits until something is ready, a timer is due, the bell is rung, or `limit` is over. If there is something to
    /// do then, calls `before`, and then `ready` with each waiter that must be unparked or woken.
    pub(in crate::runtime) fn poll(
        &self,
        epoll: &Epoll,
        limit: Option<Duration>,
        mut before: impl FnMut(),
        mut ready: impl FnMut(Waiter),
    ) {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let timeout = match limit {
            Some(Duration::ZERO) => limit,
            limit => match self.timers.next() {
                None => limit,
                Some(next) => {
                    let until = next.saturating_duration_since(Instant::now());
                    Some(limit.map_or(until, |limit| limit.min(until)))
                }
            },
        };
        let mut is_first = true;
        let mut begin = || {
            if std::mem::take(&mut is_first) {
                before();
            }
        };
        let is_rung = if self.is_inherited() {
            thread::sleep(timeout.unwrap_or(INHERITED));
            false
        } else {
            epoll.wait(timeout, |event| {
                begin();
                registered_fds::count(event, &mut ready);
            })
        };
        if is_rung && limit == Some(Duration::ZERO) && self.has_poller() {
            // The ring was meant for the poller (rule 4).
            epoll.ring();
        }
        if self.timers.is_empty() {
            return;
        }
        self.timers.take_due(Instant::now(), |waiter| {
            begin();
            ready(waiter);
        });
    }

    /// Adds a timer. If the poller waits for a later one, it is rung.
    pub(super) fn add_timer(&self, deadline: Instant, waiter: Waiter) -> Timer {
        let (timer, is_sooner) = self.timers.add(deadline, waiter);
        // A poller publishes that it is one before it takes the lock of the timers to look for the next. So either it
        // has seen this timer, or this thread sees the poller (rule 3).
        if is_sooner && self.has_poller() {
            self.ring();
        }
        timer
    }

    /// Removes a timer. Returns whether its time has come.
    pub(super) fn remove_timer(&self, timer: Timer) -> bool {
        self.timers.remove(timer)
    }
}

impl Bell for PollSet {
    fn ring(&self) {
        if let Some(epoll) = self.epoll() {
            epoll.ring();
        }
    }
}
