//! The reactor: one kernel thread of a runtime that waits for the world, so that no LWP has to poll.
//!
//! It sleeps in the kernel until a descriptor is ready, a timer is due, or a quantum may be over; then it unparks the
//! user threads that waited. Urgent ones it runs itself, at once, as an LWP: so even if all other LWPs are busy with
//! threads that never leave, they run as soon as the kernel lets this thread have a CPU. It starts at the first need.

mod quanta;
mod sources;
mod timers;

use std::{
    io,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use polling::{Events, Poller};

use super::{
    lwp::{self, Role},
    pool::Shared,
    thread::ThreadRef,
};
use quanta::Quanta;
use sources::Sources;
pub(crate) use sources::{Direction, Source};
pub(super) use timers::Timer;
use timers::Timers;

/// Urgent threads it runs before it looks at the world again.
const MOST_AT_ONCE: usize = 16;

/// See above.
pub(super) struct Reactor {
    poller: OnceLock<Poller>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
    timers: Timers,
    sources: Sources,
    quantum: Option<Duration>,
    shut_down: AtomicBool,
}

impl Reactor {
    pub(super) fn new(quantum: Option<Duration>) -> Reactor {
        Reactor {
            poller: OnceLock::new(),
            thread: Mutex::default(),
            timers: Timers::default(),
            sources: Sources::default(),
            quantum,
            shut_down: AtomicBool::new(false),
        }
    }

    /// Starts the thread, if it does not run yet.
    ///
    /// # Errors
    /// When the kernel gives no epoll descriptor, or no thread.
    pub(super) fn start(&self, shared: &'static Shared) -> io::Result<&Poller> {
        if let Some(poller) = self.poller.get() {
            return Ok(poller);
        }
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(poller) = self.poller.get() {
            return Ok(poller);
        }
        let poller = Poller::new()?;
        let body = move || lwp::serve(shared, Role::Reactor, |carry| shared.reactor.run(shared, carry));
        // It waits for the poller, which is there in a moment.
        *thread = Some(thread::Builder::new().name("lwp/reactor".into()).spawn(body)?);
        Ok(self.poller.get_or_init(|| poller))
    }

    fn run(&self, shared: &'static Shared, carry: &dyn Fn(ThreadRef)) {
        let poller = self.poller.wait();
        let mut quanta = self.quantum.map(|quantum| Quanta::new(quantum, &shared.desks));
        let mut events = Events::new();
        // Acquire: pairs with the Release in `shut_down`.
        while !self.shut_down.load(Ordering::Acquire) {
            let now = Instant::now();
            self.timers.unpark_due(now);
            let tick = quanta.as_mut().map(|quanta| quanta.tick(now));
            for urgent in (0..MOST_AT_ONCE).map_while(|_| shared.urgent.pop()) {
                carry(urgent);
            }
            let at_once = (!shared.urgent.is_empty()).then_some(now);
            let due = [self.timers.next(), tick, at_once].into_iter().flatten().min();
            let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
            events.clear();
            // Interrupted, or out of memory for a moment: the next round tries again.
            if poller.wait(&mut events, timeout).is_err() {
                thread::yield_now();
            }
            for event in events.iter() {
                self.sources.unpark(event);
            }
        }
    }

    /// `thread` will be unparked at `deadline`, unless the timer is removed before.
    ///
    /// # Panics
    /// When the reactor is needed for the first time, and cannot be started.
    pub(super) fn add_timer(&self, shared: &'static Shared, deadline: Instant, thread: ThreadRef) -> Timer {
        let poller = self.start(shared).expect("the reactor thread and its poller");
        let (timer, is_first) = self.timers.add(deadline, thread);
        if is_first {
            // It would sleep past this one otherwise. Failing is not possible for an eventfd that is open.
            let _ = poller.notify();
        }
        timer
    }

    pub(super) fn remove_timer(&self, timer: Timer) {
        self.timers.remove(timer);
    }

    pub(super) fn shut_down(&self) {
        // Release: pairs with the Acquire in `run`.
        self.shut_down.store(true, Ordering::Release);
        if let Some(poller) = self.poller.get() {
            let _ = poller.notify();
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
