//! A runtime: its LWPs, their shared state, and its options.

use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    Builder, JoinHandle,
    blocking::BlockingPool,
    carried::{Carried, Carries},
    deadlock::{self, Deadlock},
    discard::discard,
    lwp::{self, Choice, Joined, LwpThread, Stealable},
    reactor::Reactor,
    ready::{Fences, Home, Idle, SharedQueue, Wakeup},
    stack::{StackPool, overflow},
    thread_counts::{CountsOfLwp, ThreadCounts},
};
use crate::session;

/// Which LWP runs which ready thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Each LWP has its own ready threads and runs the newest first. When it has none, it steals from other LWPs: only
    /// threads that have not begun, or any in a [migrating](RuntimeBuilder::migrating) runtime. New and unparked
    /// threads come before those that have yielded.
    #[default]
    WorkStealing,
    /// One ready queue for all LWPs, first in, first out: the policy of the runtime that the paper traces. Threads that
    /// have begun keep their place in that order, but run only on their own LWP, unless the runtime is
    /// [migrating](RuntimeBuilder::migrating).
    SharedFifo,
    /// Each user thread is pinned to one LWP from its creation: the LWP of [`Builder::lwp`], or else the next in turn.
    Affinity,
}

/// How soon a user thread runs when it is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Priority {
    /// It runs only when no other thread is ready; it also gets an occasional turn. Once the thread has begun, only the
    /// threads of its LWP count as other threads, unless the runtime is [migrating](RuntimeBuilder::migrating).
    Background,
    /// It runs in the order of the policy.
    #[default]
    Normal,
    /// It runs ahead of all others. The reactor's LWP runs it as soon as it is ready, even if all workers are busy. So
    /// it may run in parallel with the threads of all workers. It begins on the reactor's LWP and stays there. In a
    /// [migrating](RuntimeBuilder::migrating) runtime, the first LWP that reaches a safe point may also run it.
    ///
    /// This priority is for short handlers of rare events: while one runs without reaching a safe point, the reactor
    /// serves no other thread.
    Urgent,
}

/// The shared state of a runtime's LWPs and user threads. Never freed: threads outside the runtime may still unpark one
/// of its threads.
pub(super) struct Shared {
    pub(super) policy: Policy,
    /// Whether a thread that has begun stays on its LWP.
    pub(super) is_pinned: bool,
    /// The queues from which workers may steal; empty if there is only one worker.
    pub(super) stealable: Box<[Stealable]>,
    /// The home of each worker.
    pub(super) homes: Box<[Home]>,
    pub(super) worker_status: Box<[lwp::WorkerStatus]>,
    /// One for each worker, and a last one for all other threads.
    pub(super) thread_counts: Box<[ThreadCounts]>,
    pub(super) any: SharedQueue,
    pub(super) urgent: SharedQueue,
    pub(super) background: SharedQueue,
    pub(super) idle: Idle,
    /// How often a worker searches for work before it sleeps.
    pub(super) spins: u32,
    pub(super) stacks: StackPool,
    pub(super) blocking: BlockingPool,
    pub(super) reactor: Reactor,
    pub(super) has_quanta: bool,
    /// Number of user threads that run on LWPs for blocking calls or wait for one.
    pub(super) in_blocking: AtomicUsize,
    next_home: AtomicUsize,
    shut_down: AtomicBool,
    /// Whether user threads can still run.
    pub(super) carried: Carried,
    on_deadlock: Option<deadlock::Handler>,
    reported: Reported,
    /// Duration of the last check for a deadlock.
    last_check_ns: AtomicU64,
}

/// The deadlocks that were reported.
#[derive(Default)]
struct Reported {
    count: AtomicU32,
    last: Mutex<Option<Deadlock>>,
}

/// Limits of [`RuntimeBuilder::quantum`]. A much longer one could overflow when it is added to an `Instant`.
const SHORTEST_QUANTUM: Duration = Duration::from_micros(100);
const LONGEST_QUANTUM: Duration = Duration::from_secs(24 * 60 * 60);
/// Limit of [`RuntimeBuilder::timer_slack`].
const MOST_SLACK: Duration = Duration::from_secs(1);
/// How long all workers must sleep before the runtime checks for a deadlock.
const PATIENCE: Duration = Duration::from_millis(200);
/// The same, as a multiple of the duration of the last check. A check looks at every thread; with this limit, checks
/// take at most a hundredth of a CPU. (An idle runtime of a million blocked threads: 0.9 %, AMD EPYC, `runtime
/// --section scale` of `benches/`.)
const PATIENCE_IN_CHECKS: u32 = 100;
const LONGEST_PATIENCE: Duration = Duration::from_secs(10);

impl Shared {
    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Relaxed)
    }

    /// The LWP to which a new thread is pinned, if that is known before it begins; `lwp` is the requested number.
    #[inline]
    pub(super) fn home_from_birth(
        &'static self,
        priority: Priority,
        lwp: Option<usize>,
    ) -> Option<&'static Home> {
        if priority == Priority::Urgent && self.is_pinned {
            return Some(&self.reactor.home);
        }
        if self.policy != Policy::Affinity {
            return None;
        }
        let number = lwp.unwrap_or_else(|| self.next_home.fetch_add(1, Ordering::Relaxed));
        Some(&self.homes[number % self.homes.len()])
    }

    /// The counts of created and ended threads to which this worker adds. `None`: those of all threads that are not
    /// workers.
    pub(super) fn counts_of(&'static self, worker: Option<usize>) -> CountsOfLwp {
        match worker {
            Some(number) => CountsOfLwp::of_worker(&self.thread_counts[number]),
            None => CountsOfLwp::of_others(&self.thread_counts[self.thread_counts.len() - 1]),
        }
    }

    /// How long the last worker to go to sleep waits before it checks for a deadlock. The time doubles with each
    /// report, because plain threads may end the waits that are reported.
    pub(super) fn patience(&self) -> Option<Duration> {
        let last_check = Duration::from_nanos(self.last_check_ns.load(Ordering::Relaxed));
        let reports = self.reported.count.load(Ordering::Relaxed).min(16);
        let patience = (last_check * PATIENCE_IN_CHECKS).max(PATIENCE * (1 << reports));
        self.on_deadlock.is_some().then(|| patience.min(LONGEST_PATIENCE))
    }

    /// Whether a worker has threads that others may steal at once.
    pub(super) fn has_stealable(&self) -> bool {
        self.stealable.iter().any(|of_one| !of_one.is_empty())
    }

    /// Checks for a deadlock. Called when all workers have slept for [`patience`](Shared::patience).
    pub(super) fn all_asleep(&'static self) {
        let Some(handler) = &self.on_deadlock else { return };
        let start = Instant::now();
        let found = Deadlock::find(self);
        self.last_check_ns.store(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        if let Some(deadlock) = found {
            let mut last = self.reported.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.as_ref().is_some_and(|last| last.is_as(&deadlock)) {
                return;
            }
            *last = Some(deadlock.clone());
            drop(last);
            self.reported.count.fetch_add(1, Ordering::Relaxed);
            // The handler is code of the program: its panic must not end this LWP, which is still needed.
            discard(catch_unwind(AssertUnwindSafe(|| handler(&deadlock))));
        }
    }
}

/// User threads on a number of LWPs.
///
/// [`shutdown`](Runtime::shutdown) waits for the user threads, at most for a given time;
/// [`shutdown_background`](Runtime::shutdown_background) waits for nothing.
///
/// When the runtime is dropped, its LWPs stop at their next switch. Dropping waits for that, without a limit. User
/// threads that have not ended by then never run again, and the values that they own are leaked, as at the end of a
/// process. An LWP with such threads is leaked, too (it sleeps), because they may have borrowed from its thread-locals.
/// [Joining](crate::JoinHandle::join) such a thread returns an error ([`RuntimeDropped`](crate::RuntimeDropped)).
///
/// Such a thread leaves the queues in which it waits, as if its time limit had passed. So others that use the same
/// locks, semaphores and channels get what it waited for. But it keeps for ever what it held before it began to wait: a
/// lock stays locked, permits stay taken, a [`OnceCell`](crate::sync::OnceCell) that it was initialising stays without
/// a value, and its ends of channels stay connected. So a receiver whose only senders belong to such threads waits for
/// ever. A value is lost if the thread was given it before the runtime was dropped, but had not returned from the
/// receiving call.
///
/// A user thread of the runtime may drop it, too. That thread continues until it next leaves its LWP.
pub struct Runtime {
    shared: &'static Shared,
    lwps: Vec<LwpThread>,
    /// Dropped last, after the LWPs of the runtime have stopped.
    _carries: Carries,
}

/// Options of a new runtime.
#[derive(Clone)]
pub struct RuntimeBuilder {
    lwps: Option<usize>,
    stack_size: usize,
    policy: Policy,
    is_migrating: bool,
    quantum: Option<Duration>,
    timer_slack: Duration,
    realtime_reactor: bool,
    on_deadlock: Option<deadlock::Handler>,
}

impl Runtime {
    /// Options of a new runtime. Defaults: an LWP for each CPU, stacks of 64 KiB, work stealing, no quantum, and user
    /// threads that stay on the LWP that began them.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            lwps: None,
            stack_size: 64 << 10,
            policy: Policy::default(),
            is_migrating: false,
            quantum: None,
            timer_slack: Duration::ZERO,
            realtime_reactor: false,
            on_deadlock: Some(Arc::new(deadlock::print_report)),
        }
    }

    /// Runs `main` as a user thread named `main`, and returns its result.
    ///
    /// # Panics
    /// If `main` panics, or if a user thread calls this.
    pub fn run<T: Send + 'static>(&self, main: impl FnOnce() -> T + Send + 'static) -> T {
        assert!(
            super::try_here().is_none(),
            "fut::Runtime::run was called by a user thread: it would block the LWP"
        );
        match Builder::new().name("main").spawn_on(self.shared, main).join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Creates a user thread; may be called from any thread.
    pub fn spawn<T: Send + 'static>(&self, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        Builder::new().spawn_on(self.shared, body)
    }

    pub(super) fn shared(&self) -> &'static Shared {
        self.shared
    }

    /// Whether the reactor's LWP is in the real-time class. `false` if that was not requested.
    ///
    /// # Errors
    /// The reason why the kernel refused, usually `PermissionDenied`. The runtime then runs without the real-time
    /// class.
    pub fn is_reactor_realtime(&self) -> io::Result<bool> {
        self.shared.reactor.is_realtime()
    }
}

impl RuntimeBuilder {
    /// Number of LWPs that carry the user threads; at least 1.
    #[must_use]
    pub fn lwps(mut self, lwps: usize) -> RuntimeBuilder {
        self.lwps = Some(lwps.clamp(1, usize::from(u16::MAX)));
        self
    }

    /// Stack size of each user thread in bytes, without its guard page; at least 16 KiB. A stack takes memory only as
    /// far as it is used. A stack overflow touches the guard page, and the process ends with a message. But C code with
    /// frames larger than a page may skip the guard page, unless it was compiled with `-fstack-clash-protection`.
    ///
    /// A panic runs on the stack of its thread. With a backtrace (RUST_BACKTRACE), printing its message takes more than
    /// 20 KiB of stack (rustc 1.95.0, x86-64: a stack of 24 KiB suffices for a thread that uses next to nothing
    /// itself). So on the smallest stacks, a panic with a backtrace overflows the stack and ends the process; without a
    /// backtrace, it is caught.
    ///
    /// Before Linux 6.13, each guard page takes two memory mappings. So at most 28669 threads that have begun and not
    /// ended can exist at a time (with the default `vm.max_map_count` of 65530). If more are needed, the process ends.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> RuntimeBuilder {
        self.stack_size = bytes.max(16 << 10);
        self
    }

    /// Which LWP runs which ready thread.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> RuntimeBuilder {
        self.policy = policy;
        self
    }

    /// Lets user threads that have begun move to another LWP, at each call that blocks, yields or is a safe point: the
    /// full M:N of the paper. All LWPs then share all threads; without this option, they share only those that have not
    /// begun. [`Policy::Affinity`] pins threads nevertheless.
    ///
    /// A thread that leaves its LWP while [`std::thread::panicking`] is true comes back to it, because panics are
    /// counted for each LWP. Meanwhile `panicking()` is also true in other user threads of that LWP, as in a pinned
    /// runtime.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// // SAFETY: the threads below use nothing that belongs to an LWP.
    /// let builder = unsafe { fut::Runtime::builder().migrating() };
    /// let sum = builder.lwps(2).build()?.run(|| fut::spawn(|| 40 + 2).join().unwrap());
    /// assert_eq!(sum, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// No code that runs in a user thread of this runtime, including that of libraries, keeps anything that belongs to
    /// a kernel thread across a call that can switch: any call of this crate that can block, any that is a safe point
    /// ([`checkpoint`](crate::checkpoint), those of [`sync`](crate::sync) and [`net`](crate::net)), and any function
    /// that calls one. Such things are
    /// - a borrow of a thread-local: a switch inside [`LocalKey::with`](std::thread::LocalKey::with), a guard of a
    ///   `RefCell` in it, a reference whose lifetime was extended;
    /// - values that are not `Send`, on the stack or in a [`UserLocal`](crate::UserLocal), if another one of the same
    ///   family is reachable through a thread-local, or if they otherwise depend on their kernel thread: an `Rc` of
    ///   which a thread-local has a clone, `ThreadRng`, the guard of a `std::sync::Mutex`, the lock of `stdout` or
    ///   `stderr`;
    /// - the address of a thread-local that the compiler has kept: a function that uses one, directly or by inlining,
    ///   both before and after such a call.
    #[must_use]
    pub unsafe fn migrating(mut self) -> RuntimeBuilder {
        self.is_migrating = true;
        self
    }

    /// The quantum. A user thread that has run for this time while others are ready leaves at its next safe point: a
    /// call of this crate that can switch, or [`checkpoint`](crate::checkpoint). At least 100 µs, at most a day.
    ///
    /// If the thread reaches no safe point, the threads that are queued behind it go to the queue of all LWPs, at most
    /// two quanta after its dispatch. This applies to threads that have not begun, or to any in a
    /// [migrating](RuntimeBuilder::migrating) runtime.
    #[must_use]
    pub fn quantum(mut self, quantum: Duration) -> RuntimeBuilder {
        self.quantum = Some(quantum.clamp(SHORTEST_QUANTUM, LONGEST_QUANTUM));
        self
    }

    /// How much later than requested a sleep or a time limit may end, so that several end together. The default is
    /// zero, the maximum a second. The kernel adds its own slack, some 50 µs (`PR_SET_TIMERSLACK`). With a slack of a
    /// millisecond, which is the granularity of tokio's timers, sleeps need less CPU time than without slack: a quarter
    /// of it if 100 to 1000 user threads sleep, and half to three quarters of it if more do. Not for
    /// [`Priority::Urgent`] threads.
    #[must_use]
    pub fn timer_slack(mut self, slack: Duration) -> RuntimeBuilder {
        self.timer_slack = slack.min(MOST_SLACK);
        self
    }

    /// Lets the kernel run the reactor's LWP ahead of all ordinary ones, including those of other processes
    /// (SCHED_FIFO). This is for [`Priority::Urgent`] threads that must run at once even if more LWPs are runnable than
    /// there are CPUs. It requires CAP_SYS_NICE, or an RLIMIT_RTPRIO of at least 1. Without these, the runtime runs
    /// without the real-time class, and [`Runtime::is_reactor_realtime`] returns the error. An urgent thread that never
    /// blocks then monopolises a CPU.
    #[must_use]
    pub fn realtime_reactor(mut self, realtime: bool) -> RuntimeBuilder {
        self.realtime_reactor = realtime;
        self
    }

    /// Sets the function that is called when all user threads are blocked and nothing known to this runtime can unpark
    /// one; see [`Deadlock`] for what is known of plain threads. By default the report is printed on standard error.
    ///
    /// The function is called on an LWP, but not in a user thread. It is called again only if other threads are blocked
    /// then, or if they are blocked for other reasons. A plain thread may still unpark a user thread, so the runtime
    /// continues to wait, also if the handler panics. A handler that waits for a user thread blocks the LWP.
    #[must_use]
    pub fn on_deadlock(mut self, handler: impl Fn(&Deadlock) + Send + Sync + 'static) -> RuntimeBuilder {
        self.on_deadlock = Some(Arc::new(handler));
        self
    }

    /// Starts the LWPs and the reactor. Under `sigmund record`, they are recorded from their start. If the process
    /// should be recorded and cannot be, it runs unrecorded; [`init`](crate::init) reports this once on standard error.
    ///
    /// All kernel resources for waiting for timers and I/O are allocated here: a thread, and two descriptors for it and
    /// for each LWP (in a [migrating](RuntimeBuilder::migrating) runtime, for all LWPs together). They are closed when
    /// the runtime is dropped. If these were more descriptors than a quarter of RLIMIT_NOFILE, or more than are left,
    /// the runtime uses only two or four: then the LWPs share them, and waiting for I/O and timers costs more.
    ///
    /// # Errors
    /// If no more threads, descriptors or memory for stacks are available.
    pub fn build(self) -> io::Result<Runtime> {
        let _ = session::init();
        let lwps = self.lwps.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
        let is_pinned = !self.is_migrating || self.policy == Policy::Affinity;
        let sets = if is_pinned { lwps } else { 1 };
        let reactor = Reactor::new(self.quantum, self.realtime_reactor, sets, self.timer_slack)?;
        let stacks = StackPool::new(self.stack_size)?;
        overflow::watch();
        let (choices, stealable) = Choice::of_workers(lwps);
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            policy: self.policy,
            is_pinned,
            stealable,
            homes: (0..lwps).map(|number| Home::new(Wakeup::Worker(number))).collect(),
            worker_status: (0..lwps).map(|_| lwp::WorkerStatus::default()).collect(),
            thread_counts: (0..=lwps).map(|_| ThreadCounts::default()).collect(),
            any: SharedQueue::default(),
            urgent: SharedQueue::default(),
            background: SharedQueue::default(),
            idle: Idle::new(reactor.bells(lwps), Fences::of_this_kernel()),
            spins: if lwps == 1 { 1 } else { 30 },
            stacks,
            blocking: BlockingPool::default(),
            reactor,
            has_quanta: self.quantum.is_some(),
            in_blocking: AtomicUsize::new(0),
            next_home: AtomicUsize::new(0),
            shut_down: AtomicBool::new(false),
            carried: Carried::default(),
            on_deadlock: self.on_deadlock,
            reported: Reported::default(),
            last_check_ns: AtomicU64::new(0),
        }));
        let mut runtime = Runtime { shared, lwps: Vec::new(), _carries: Carries::new(shared) };
        shared.reactor.start(shared)?;
        for (number, choice) in choices.into_iter().enumerate() {
            let carries = Carries::new(shared);
            let body = move || {
                let stays = lwp::work(shared, choice);
                drop(carries);
                stays
            };
            let lwp = LwpThread::spawn(format!("lwp/{number}"), body)?;
            runtime.lwps.push(lwp);
        }
        Ok(runtime)
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("lwps", &self.lwps)
            .field("stack_size", &self.stack_size)
            .field("policy", &self.policy)
            .field("is_migrating", &self.is_migrating)
            .field("quantum", &self.quantum)
            .field("timer_slack", &self.timer_slack)
            .field("realtime_reactor", &self.realtime_reactor)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("lwps", &self.lwps.len())
            .field("policy", &self.shared.policy)
            .finish_non_exhaustive()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop(None);
    }
}

impl Runtime {
    /// Stops the LWPs, and waits for them until `limit`. LWPs that have not stopped by then continue until their user
    /// threads leave them. Everything that they use (`Shared`, stacks, blocks, a set that is polled) is shared, or
    /// never freed.
    pub(super) fn stop(&mut self, limit: Option<Instant>) {
        self.shared.shut_down.store(true, Ordering::Relaxed);
        self.shared.idle.wake_all();
        let mut all_stopped = true;
        for lwp in self.lwps.drain(..) {
            // A user thread of this runtime may drop it. The LWP of that thread cannot wait for itself, and ends at its
            // next switch.
            all_stopped &= !lwp.is_current() && lwp.join(limit) == Joined::Stopped;
        }
        self.shared.blocking.shut_down();
        all_stopped &= self.shared.reactor.shut_down(limit) == Joined::Stopped;
        if all_stopped {
            self.shared.stacks.unmap_free();
        } else {
            self.shared.leave_lwps();
        }
    }
}
