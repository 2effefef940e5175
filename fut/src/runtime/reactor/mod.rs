//! Waiting in the kernel for descriptors and timers, which is a part of being idle. And the reactor's own LWP, for work
//! that must not wait for a worker.
//!
//! A worker that has no ready thread polls a [`PollSet`] of descriptors and timers. What is ready makes threads of that
//! very LWP ready, in one batch, and no LWP is woken for them. In a pinned runtime each worker has its own set, for
//! what its own threads wait for: these threads could not run elsewhere anyway. In a migrating runtime the workers
//! share one set.
//!
//! The reactor's LWP has the last set. It serves urgent threads, threads in blocking calls, threads of other runtimes,
//! and descriptors for which threads of several LWPs wait. The reactor sleeps in the kernel until a descriptor is
//! ready, a timer is due, or a quantum may be over. Then it unparks the user threads that wait. It runs urgent ones
//! itself, at once. So even if all workers are busy with threads that never leave, urgent threads run as soon as the
//! kernel gives this LWP a CPU. The reactor starts with the runtime, so that waiting later needs no descriptor or
//! thread that the kernel may refuse. Its thread becomes an LWP, with a ring to record to, when there is something to
//! do for the first time.
//!
//! 1. Each round of the reactor checks everything: quanta, sets of workers, urgent threads, its own set. It leaves work
//!    for the next round only if that follows at once: it does not sleep while an urgent thread is ready.
//! 2. A thread that gives the reactor work earlier than it expects (an urgent thread, the end, rule 5) first publishes
//!    that work, and then rings the bell of the reactor's set. A ring persists until the next wait, so it is effective
//!    even if the reactor was just about to sleep.
//! 3. A thread that waits in the kernel for a set first becomes the poller of the set, and then looks for the first
//!    timer. A thread that adds a timer which is due before the poller looks again looks for a poller afterwards, and
//!    rings. Both take the lock of the timers in between. So the poller sees the timer, or it is rung. A set without a
//!    poller needs no ring. The poller looks again when it is rung, and when the first timer that it saw is due, even
//!    if that timer was removed.
//! 4. Two threads may poll one set at a time: the kernel gives each event to one of them, and each timer is taken under
//!    the lock. Only one of them sleeps in the set: its poller, for which the rings are meant. A thread that polls
//!    without waiting may fetch a ring; it rings again if there is a poller. The thread that rang has seen the poller,
//!    so this thread sees it, too, unless the poller has returned meanwhile and needs no ring. (Without the second
//!    ring, a woken LWP slept on.)
//! 5. Every set is served, even if its workers run threads that never leave. A worker polls when it has no ready
//!    thread, and now and then when it has. If it does neither for a [`TICK`], the reactor polls its set. So the
//!    reactor ticks while any worker does not rest, but only once a set of a worker has been used. A worker that stops
//!    resting publishes that, and so does the first user of a set. Both then check whether the reactor ticks; if not,
//!    they ring. The reactor publishes that it stops ticking, and then checks once more whether all workers rest. With
//!    a full fence in between, one of the two sees the other (`attention.rs` has the model).
//! 6. A tick also wakes an LWP if there are threads that it could steal: threads of a batch that is delayed by one of
//!    its threads.
//! 7. Urgent threads cannot starve timers and descriptors. The reactor runs at most [`MOST_AT_ONCE`] of them in a
//!    round, and each that reaches safe points for at most [`SLICE`]. A thread that reaches none does block the
//!    reactor: no timer, quantum or descriptor of its set is served meanwhile. In a pinned runtime all urgent threads
//!    are pinned to the reactor's LWP. In a migrating one, any worker may run the urgent threads that the reactor does
//!    not run at once.
//! 8. Unparking is always safe, but may be spurious. A timer or an event may be late; by then its thread may wait for
//!    something else, or its block may belong to another thread. So a thread that parks checks its condition again.
//! 9. If there are only few descriptors ([`SHARE`]), the workers of a pinned runtime share a set, too. A thread of
//!    another worker that becomes ready then goes to the inbox of that worker. If not even these are available, the
//!    reactor's LWP has the only set, and unparks all threads. It is then the poller of that set for ever, so workers
//!    sleep on their conditions.

mod attention;
mod epoll;
mod event_count;
mod poll_set;
mod process;
mod quanta;
mod realtime;
mod registered_fds;
#[cfg(feature = "compat")]
mod task_timer;
mod timers;
mod waiter;

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    carried::Carries,
    lwp::{self, Joined, LwpThread, Role, Stays},
    pool::Shared,
    ready::{Bell, Home, Wakeup},
    thread::ThreadRef,
};
use attention::Attention;
pub(super) use epoll::Epoll;
pub(super) use poll_set::PollSet;
use quanta::Quanta;
use registered_fds::RegisteredFds;
pub(crate) use registered_fds::{Direction, Limit, RegisteredFd};
#[cfg(feature = "compat")]
pub(crate) use task_timer::TaskTimer;
pub(super) use waiter::{Waiter, wake};

/// Maximum number of urgent threads that the reactor runs in one round.
const MOST_AT_ONCE: usize = 16;
/// Maximum time that an urgent thread runs on the reactor's LWP, if it has safe points.
const SLICE: Duration = Duration::from_millis(1);
/// How long a set of a busy worker may stay unserved (rule 5). With 100 sets, each costs the reactor some 3 µs.
const TICK: Duration = Duration::from_millis(10);
/// The same, if idle workers could run the threads that become ready (rules 5 and 6).
const TICK_SHARED: Duration = Duration::from_millis(2);

/// A runtime takes at most one in this number of the descriptors that a process may have, if it can do with fewer.
const SHARE: u64 = 4;
/// Number of descriptors of a set.
const OF_A_SET: u64 = 2;

/// The sets of `workers` workers, and last the set of the reactor's LWP. Their timers may be late by `slack`. There are
/// fewer sets if there are few descriptors.
fn sets(workers: usize, slack: Duration) -> io::Result<Box<[Arc<PollSet>]>> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let is_much = limit.is_some_and(|limit| OF_A_SET * (workers as u64 + 1) > limit / SHARE);
    let first = if is_much { 1 } else { workers };
    let mut made = Err(io::ErrorKind::Other.into());
    for workers in [first, 1, 0] {
        let slacks = std::iter::repeat_n(slack, workers).chain([Duration::ZERO]);
        made = slacks.map(|slack| PollSet::new(slack).map(Arc::new)).collect();
        let is_short = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
        if !made.as_ref().is_err_and(is_short) {
            break;
        }
    }
    made
}

/// A timer that was added, and the number of its set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    set: usize,
    timer: timers::Timer,
}

/// The shared state of the reactor.
pub(super) struct Reactor {
    /// The sets of the workers, and last the set of the reactor's LWP.
    sets: Box<[Arc<PollSet>]>,
    /// Whether the reactor ticks (rule 5).
    attention: Attention,
    thread: Mutex<Option<LwpThread>>,
    /// The home of threads that are pinned to the reactor's LWP: in a pinned runtime, the urgent ones.
    pub(super) home: Home,
    sources: RegisteredFds,
    quantum: Option<Duration>,
    /// If the real-time class is requested: the answer of the kernel, with the error number if it has refused.
    realtime: Option<OnceLock<Result<(), i32>>>,
    born: Instant,
    /// End of the slice of the urgent thread on its LWP, in ns since `born`. Used only by the reactor's thread.
    slice_end: AtomicU64,
    shut_down: AtomicBool,
}

impl Reactor {
    /// # Errors
    /// If no descriptors are available.
    pub(super) fn new(
        quantum: Option<Duration>,
        realtime: bool,
        worker_sets: usize,
        timer_slack: Duration,
    ) -> io::Result<Reactor> {
        let sets = sets(worker_sets, timer_slack).map_err(|error| {
            let text = format!("no descriptors for the reactor of a runtime (epoll, eventfd): {error}");
            io::Error::new(error.kind(), text)
        })?;
        Ok(Reactor {
            sets,
            attention: Attention::default(),
            thread: Mutex::default(),
            home: Home::new(Wakeup::Reactor),
            sources: RegisteredFds::default(),
            quantum,
            realtime: realtime.then(OnceLock::new),
            born: Instant::now(),
            slice_end: AtomicU64::new(0),
            shut_down: AtomicBool::new(false),
        })
    }

    /// Starts the thread of the reactor. Called once.
    ///
    /// # Errors
    /// If the kernel creates no thread.
    pub(super) fn start(&self, shared: &'static Shared) -> io::Result<()> {
        let own = &*self.sets[self.own_set()];
        let Some(epoll) = own.epoll() else { return Ok(()) };
        let _ = own.begin_wait();
        let carries = Carries::new(shared);
        let body = move || {
            // Dropped when this LWP carries no more threads.
            let _carries = carries;
            let reactor = &shared.reactor;
            if reactor.quantum.is_none() && reactor.realtime.is_none() {
                // There is no work yet. After an interrupted wait, the first round finds nothing to do, which is
                // harmless.
                epoll.wait_without_fetching();
            }
            if reactor.is_shut_down() {
                return Stays::No;
            }
            lwp::serve(shared, Role::Reactor, &reactor.home, |carry| {
                reactor.run(shared, &epoll, carry);
            })
        };
        let thread = LwpThread::spawn("lwp/reactor".into(), body)?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// The number of the set of the reactor's LWP.
    pub(super) fn own_set(&self) -> usize {
        self.sets.len() - 1
    }

    /// The number of the set of a worker. It is that of the reactor's LWP if there is no other (rule 9).
    pub(super) fn worker_set(&self, worker: usize) -> usize {
        worker.checked_rem(self.own_set()).unwrap_or_else(|| self.own_set())
    }

    pub(super) fn set(&self, number: usize) -> &PollSet {
        &self.sets[number]
    }

    /// The bell of each of `workers` workers.
    pub(super) fn bells(&self, workers: usize) -> Vec<Arc<dyn Bell>> {
        (0..workers).map(|worker| Arc::clone(&self.sets[self.worker_set(worker)]) as Arc<dyn Bell>).collect()
    }

    /// Whether a set of a worker has ever been used.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.attention.is_used()
    }

    /// Called before something is put into a set for the first time (rule 5).
    #[inline]
    pub(super) fn use_set(&self, set: usize) {
        if set != self.own_set() && self.attention.first_use() {
            self.notify();
        }
    }

    /// Called by a worker that has rested (rule 5).
    #[inline]
    pub(super) fn stopped_resting(&self) {
        if self.attention.wants_tick() {
            self.notify();
        }
    }

    /// Ends the reactor's current wait in the kernel, or else its next one (rule 2).
    fn notify(&self) {
        self.sets[self.own_set()].ring();
    }

    fn is_shut_down(&self) -> bool {
        // Acquire: pairs with the Release in `shut_down`.
        self.shut_down.load(Ordering::Acquire)
    }

    /// The main loop of the reactor as an LWP.
    fn run(&self, shared: &'static Shared, epoll: &Epoll, carry: &dyn Fn(ThreadRef) -> bool) {
        if let Some(answer) = &self.realtime {
            let _ = answer.set(realtime::ask().map_err(|error| error.raw_os_error().unwrap_or(libc::EPERM)));
        }
        let mut quanta = self.quantum.map(|quantum| Quanta::new(quantum, &shared.worker_status));
        let own = &*self.sets[self.own_set()];
        let mut ticks = Ticks::new(shared, &self.sets[..self.own_set()]);
        while !self.is_shut_down() {
            let now = Instant::now();
            let tick = quanta.as_mut().map(|quanta| quanta.tick(now, |worker| shared.share_queue_of(worker)));
            let attends = self.attend(shared, &mut ticks, now);
            self.begin_slice();
            let next_urgent = || self.home.inbox.pop().or_else(|| shared.urgent.pop());
            for urgent in (0..MOST_AT_ONCE).map_while(|_| next_urgent()) {
                if !shared.urgent.is_empty() {
                    // An idle worker can run the next urgent thread without waiting for this LWP.
                    shared.idle.wake_one();
                }
                let _ = carry(urgent);
                if self.is_slice_over() {
                    break;
                }
            }
            let is_urgent = !shared.urgent.is_empty() || !self.home.inbox.is_empty();
            let at_once = is_urgent.then_some(now);
            let due = [tick, attends, at_once].into_iter().flatten().min();
            let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
            own.poll(epoll, timeout, || {}, Waiter::wake);
        }
    }

    /// Rules 5 and 6: serves the sets of busy workers, if it is time to. Returns when to do so again.
    fn attend(&self, shared: &'static Shared, ticks: &mut Ticks<'_>, now: Instant) -> Option<Instant> {
        if !self.attention.is_ticking() {
            return None;
        }
        if let Some(next) = ticks.next.filter(|next| now < *next) {
            return Some(next);
        }
        // The first tick only looks.
        let serves = ticks.next.is_some();
        for (set, seen) in &mut ticks.sets {
            let polls = set.polls();
            if serves
                && polls == *seen
                && !set.has_poller()
                && let Some(epoll) = set.epoll()
            {
                set.poll(&epoll, Some(Duration::ZERO), || {}, Waiter::wake);
            }
            *seen = set.polls();
        }
        if serves && shared.has_stealable() {
            shared.idle.wake_one();
        }
        let all_rest = || shared.worker_status.iter().all(lwp::WorkerStatus::is_resting);
        ticks.next =
            if all_rest() && self.attention.stop(all_rest) { None } else { Some(now + ticks.period) };
        ticks.next
    }

    /// Whether the reactor's LWP is in the real-time class. Waits for the answer of the kernel.
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

    /// Called when a thread other than the reactor has made an urgent thread ready (rule 2).
    pub(super) fn notice_urgent(&self) {
        self.notify();
    }

    /// Adds a timer: `thread` is unparked at `deadline`, unless the timer is removed before.
    pub(super) fn add_timer(&self, deadline: Instant, thread: ThreadRef) -> Timer {
        let set = lwp::poll_set_of(thread.shared(), thread);
        self.use_set(set);
        Timer { set, timer: self.sets[set].add_timer(deadline, Waiter::Thread(thread)) }
    }

    /// Adds a timer for a future that is polled by the calling thread.
    #[cfg(feature = "compat")]
    fn add_task_timer(&self, shared: &Shared, deadline: Instant, waker: std::task::Waker) -> Timer {
        let set = lwp::poll_set(shared);
        self.use_set(set);
        Timer { set, timer: self.sets[set].add_timer(deadline, Waiter::Task(waker)) }
    }

    /// Removes a timer. Returns whether its time has come.
    pub(super) fn remove_timer(&self, timer: Timer) -> bool {
        self.sets[timer.set].remove_timer(timer.timer)
    }

    /// Ends the reactor. Waits for the end of its LWP until `limit`.
    pub(super) fn shut_down(&self, limit: Option<Instant>) -> Joined {
        // Release: pairs with the Acquire in `is_shut_down`.
        self.shut_down.store(true, Ordering::Release);
        self.notify();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An urgent thread may have dropped the runtime. Then the reactor cannot wait for itself, and ends afterwards.
        let joined = match thread {
            None => Joined::Stopped,
            Some(thread) if thread.is_current() => Joined::StillRuns,
            Some(thread) => thread.join(limit),
        };
        self.sources.end();
        self.sets.iter().for_each(|set| set.end());
        joined
    }
}

/// The reactor's view of the workers' sets (rule 5).
struct Ticks<'a> {
    /// Each set with its number of polls at the last tick.
    sets: Vec<(&'a PollSet, u64)>,
    period: Duration,
    /// When the next tick is; `None` while the reactor does not tick.
    next: Option<Instant>,
}

impl<'a> Ticks<'a> {
    fn new(shared: &Shared, sets: &'a [Arc<PollSet>]) -> Ticks<'a> {
        let is_shared = sets.len() < shared.homes.len();
        let period = if is_shared { TICK_SHARED } else { TICK };
        Ticks { sets: sets.iter().map(|set| (&**set, set.polls())).collect(), period, next: None }
    }
}
