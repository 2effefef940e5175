//! The reactor: the kernel thread of a runtime that waits for descriptors and timers, so that no worker has to poll.
//!
//! It sleeps in the kernel until a descriptor is ready, a timer is due, or a quantum may be over; then it unparks the
//! waiting user threads. It runs urgent ones itself, at once, as an LWP: so even if all other LWPs are busy with
//! threads that never leave, urgent threads run as soon as the kernel gives this LWP a CPU.
//!
//! It starts with the runtime, so that waiting later needs no descriptor or thread that the kernel may refuse. It
//! becomes an LWP, with a ring to record to, when there is something to do for the first time.
//!
//! 1. Each round checks everything: timers, quanta, urgent threads, descriptors, in this order. Work is left for the
//!    next round only if that follows at once: the reactor does not sleep while an urgent thread is ready.
//! 2. A thread that gives it earlier work than it expects (a first timer, an urgent thread, the end) first publishes
//!    that work, and then notifies the poller. The notification persists until the next wait, so it is effective even
//!    if the reactor was just about to sleep.
//! 3. Urgent threads cannot starve timers and descriptors: it runs at most [`MOST_AT_ONCE`] of them in a round, and
//!    each that reaches safe points for at most [`SLICE`]. A thread that reaches none does block the reactor: no timer,
//!    quantum or descriptor is served meanwhile. In a pinned runtime all urgent threads are pinned to its LWP; in a
//!    migrating one, any worker may run those that it does not run at once.
//! 4. Unparking is always safe, but may be spurious: a timer or an event may be late, and by then its thread waits for
//!    something else, or its block belongs to another thread. So a thread that parks checks its condition again.

mod event_count;
mod quanta;
mod realtime;
mod registered_fds;
mod timers;

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use polling::{Events, Poller};

use super::{
    carried::Carries,
    lwp::{self, LwpThread, Role, Stays},
    pool::Shared,
    ready::{Home, Wakeup},
    thread::ThreadRef,
};
use quanta::Quanta;
use registered_fds::RegisteredFds;
pub(crate) use registered_fds::{Direction, Limit, RegisteredFd};
pub(super) use timers::Timer;
use timers::Timers;

/// Maximum number of urgent threads that it runs in one round.
const MOST_AT_ONCE: usize = 16;
/// Maximum time that an urgent thread runs on the reactor's LWP, if it has safe points.
const SLICE: Duration = Duration::from_millis(1);

/// The shared state of the reactor.
pub(super) struct Reactor {
    /// `None` when the reactor has ended: its descriptors are closed then.
    poller: Mutex<Option<Arc<Poller>>>,
    thread: Mutex<Option<LwpThread>>,
    /// The home of threads pinned to its LWP: in a pinned runtime, the urgent ones.
    pub(super) home: Home,
    timers: Timers,
    sources: RegisteredFds,
    quantum: Option<Duration>,
    /// If the real-time class is requested: the kernel's answer, with the error number if it refuses.
    realtime: Option<OnceLock<Result<(), i32>>>,
    born: Instant,
    /// End of the slice of the urgent thread on its LWP, in ns since `born`. Used only by the reactor's thread.
    slice_end: AtomicU64,
    shut_down: AtomicBool,
}

impl Reactor {
    /// # Errors
    /// When no descriptors are available.
    pub(super) fn new(quantum: Option<Duration>, realtime: bool) -> io::Result<Reactor> {
        let poller = Poller::new().map_err(|error| {
            let text =
                format!("no descriptors for the reactor of a runtime (epoll, eventfd, timerfd): {error}");
            io::Error::new(error.kind(), text)
        })?;
        Ok(Reactor {
            poller: Mutex::new(Some(Arc::new(poller))),
            thread: Mutex::default(),
            home: Home::new(Wakeup::Reactor),
            timers: Timers::default(),
            sources: RegisteredFds::default(),
            quantum,
            realtime: realtime.then(OnceLock::new),
            born: Instant::now(),
            slice_end: AtomicU64::new(0),
            shut_down: AtomicBool::new(false),
        })
    }

    /// Starts the thread. Called once.
    ///
    /// # Errors
    /// When the kernel creates no thread.
    pub(super) fn start(&self, shared: &'static Shared) -> io::Result<()> {
        let Some(poller) = self.poller() else { return Ok(()) };
        let carries = Carries::new(shared);
        let body = move || {
            // Dropped when this LWP carries no more threads.
            let _carries = carries;
            let reactor = &shared.reactor;
            let mut events = Events::new();
            if reactor.quantum.is_none() && reactor.realtime.is_none() {
                // There is no work yet. After an interrupted wait, the round finds nothing to do, which is harmless.
                let _ = poller.wait(&mut events, None);
            }
            if reactor.is_shut_down() {
                return Stays::No;
            }
            lwp::serve(shared, Role::Reactor, &reactor.home, |carry| {
                reactor.run(shared, &poller, events, carry);
            })
        };
        let thread = LwpThread::spawn("lwp/reactor".into(), body)?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// `None` when the reactor has ended.
    fn poller(&self) -> Option<Arc<Poller>> {
        self.poller.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends its wait in the kernel, or the next one (rule 2).
    fn notify(&self) {
        if let Some(poller) = self.poller() {
            // Writing to an open eventfd does not fail.
            let _ = poller.notify();
        }
    }

    fn is_shut_down(&self) -> bool {
        // Acquire: pairs with the Release in `shut_down`.
        self.shut_down.load(Ordering::Acquire)
    }

    /// The main loop as an LWP. `events` are those that were received before.
    fn run(
        &self,
        shared: &'static Shared,
        poller: &Poller,
        mut events: Events,
        carry: &dyn Fn(ThreadRef) -> bool,
    ) {
        if let Some(answer) = &self.realtime {
            let _ = answer.set(realtime::ask().map_err(|error| error.raw_os_error().unwrap_or(libc::EPERM)));
        }
        let mut quanta = self.quantum.map(|quantum| Quanta::new(quantum, &shared.worker_status));
        while !self.is_shut_down() {
            for event in events.iter() {
                self.sources.unpark(event);
            }
            let now = Instant::now();
            self.timers.unpark_due(now);
            let tick = quanta.as_mut().map(|quanta| quanta.tick(now));
            self.begin_slice();
            let next_urgent = || self.home.inbox.pop().or_else(|| shared.urgent.pop());
            for urgent in (0..MOST_AT_ONCE).map_while(|_| next_urgent()) {
                if !shared.urgent.is_empty() {
                    // An idle worker can run it without waiting for this LWP.
                    shared.idle.wake_one();
                }
                let _ = carry(urgent);
                if self.is_slice_over() {
                    break;
                }
            }
            let is_urgent = !shared.urgent.is_empty() || !self.home.inbox.is_empty();
            let at_once = is_urgent.then_some(now);
            let due = [self.timers.next(), tick, at_once].into_iter().flatten().min();
            let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
            events.clear();
            // Interrupted, or temporarily out of memory: the next round tries again.
            if poller.wait(&mut events, timeout).is_err() {
                thread::yield_now();
            }
        }
    }

    /// Whether its LWP is in the real-time class; waits for the kernel's answer.
    pub(super) fn is_realtime(&self) -> io::Result<bool> {
        let Some(answer) = &self.realtime else { return Ok(false) };
        answer.wait().map(|()| true).map_err(io::Error::from_raw_os_error)
    }

    fn begin_slice(&self) {
        let end = self.born.elapsed() + SLICE;
        self.slice_end.store(end.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Whether the slice of the urgent thread that is mounted on the reactor's LWP is over.
    pub(super) fn is_slice_over(&self) -> bool {
        self.born.elapsed().as_nanos() as u64 > self.slice_end.load(Ordering::Relaxed)
    }

    /// Called when an urgent thread was made ready by another thread than the reactor (rule 2).
    pub(super) fn notice_urgent(&self) {
        self.notify();
    }

    /// Adds a timer: `thread` is unparked at `deadline`, unless the timer is removed before.
    pub(super) fn add_timer(&self, deadline: Instant, thread: ThreadRef) -> Timer {
        let (timer, is_first) = self.timers.add(deadline, thread);
        if is_first {
            // Otherwise the reactor would sleep beyond this deadline.
            self.notify();
        }
        timer
    }

    pub(super) fn remove_timer(&self, timer: Timer) {
        self.timers.remove(timer);
    }

    pub(super) fn shut_down(&self) {
        // Release: pairs with the Acquire in `run`.
        self.shut_down.store(true, Ordering::Release);
        self.notify();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An urgent thread may have dropped the runtime: the reactor cannot wait for itself, and ends afterwards.
        if let Some(thread) = thread.filter(|thread| !thread.is_current()) {
            thread.join();
        }
        let poller = self.poller.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(poller);
        self.sources.end();
    }
}
