//! A runtime: its LWPs, what they share, and the choices for it.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    Builder, JoinHandle,
    blocking::BlockingPool,
    deadlock::{self, Deadlock},
    lwp,
    reactor::Reactor,
    ready::{Deque, Fences, Idle, SharedQueue},
    stack::{StackPool, overflow},
    thread::UserThread,
};
use crate::session;

/// Which LWP runs which ready thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Each LWP has its own ready threads, newest first, and steals from others when it has none. New threads and
    /// unparked ones come before those that have yielded.
    #[default]
    WorkStealing,
    /// One ready queue for all LWPs, first in, first out: the policy of the runtime that the paper traces.
    SharedFifo,
    /// A user thread keeps to one LWP: that of [`Builder::lwp`], or the next in turn.
    Affinity,
}

/// How soon a user thread runs when it is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Priority {
    /// Only when nothing else is ready.
    Background,
    /// In its turn.
    #[default]
    Normal,
    /// Ahead of all others. When it is unparked, by I/O, time or another thread, the reactor's LWP runs it at once,
    /// even if all others are busy; so it may run beside the threads of all LWPs. For short treatment of rare events:
    /// while one runs without coming to a safe point, the reactor serves nobody else.
    Urgent,
}

/// What the LWPs and user threads of a runtime share. Never freed: a thread elsewhere may still unpark one of ours.
pub(super) struct Shared {
    pub(super) policy: Policy,
    /// One for each worker.
    pub(super) queues: Box<[Queues]>,
    pub(super) desks: Box<[lwp::Desk]>,
    pub(super) any: SharedQueue,
    pub(super) urgent: SharedQueue,
    pub(super) background: SharedQueue,
    pub(super) idle: Idle,
    /// How often a worker looks for work before it sleeps.
    pub(super) spins: u32,
    pub(super) stacks: StackPool,
    pub(super) blocking: BlockingPool,
    pub(super) reactor: Reactor,
    pub(super) has_quanta: bool,
    /// User threads that run while their LWP may block in the kernel, or wait for such an LWP.
    pub(super) in_blocking: AtomicUsize,
    next_home: AtomicUsize,
    shut_down: AtomicBool,
    on_deadlock: Option<deadlock::Handler>,
    told_deadlock: AtomicBool,
}

/// The ready threads of one worker.
pub(super) struct Queues {
    /// New and unparked threads: the worker takes the newest, thieves the oldest.
    pub(super) newest_first: Deque<UserThread>,
    /// Threads that have yielded: everybody takes the oldest.
    pub(super) oldest_first: Deque<UserThread>,
    /// Threads that keep to this worker.
    pub(super) inbox: SharedQueue,
}

/// Room in each of a worker's queues. What does not fit goes to the queue of all.
const QUEUE_LEN: usize = 1024;
/// How long all LWPs must sleep before somebody looks for a deadlock.
const PATIENCE: Duration = Duration::from_millis(200);

impl Shared {
    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Relaxed)
    }

    /// The LWP that the next thread keeps to, if it has no wish.
    pub(super) fn next_home(&self) -> usize {
        self.next_home.fetch_add(1, Ordering::Relaxed) % self.queues.len()
    }

    /// How long the last worker to go to sleep waits before it looks for a deadlock; `None` if it was told already.
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.on_deadlock.is_some() && !self.told_deadlock.load(Ordering::Relaxed)).then_some(PATIENCE)
    }

    /// All workers have slept for the time of `PATIENCE`.
    pub(super) fn all_asleep(&'static self) {
        let Some(handler) = &self.on_deadlock else { return };
        if let Some(deadlock) = Deadlock::find(self) {
            self.told_deadlock.store(true, Ordering::Relaxed);
            handler(&deadlock);
        }
    }
}

/// User threads on a number of LWPs.
///
/// Dropping it sends the LWPs home at their next switch. User threads that have not ended by then never run again,
/// and what they own is leaked, as with threads of a process that ends.
pub struct Runtime {
    shared: &'static Shared,
    lwps: Vec<thread::JoinHandle<()>>,
}

/// Choices for a new runtime.
#[derive(Clone)]
pub struct RuntimeBuilder {
    lwps: Option<usize>,
    stack_size: usize,
    policy: Policy,
    quantum: Option<Duration>,
    realtime_reactor: bool,
    on_deadlock: Option<deadlock::Handler>,
}

impl Runtime {
    /// Choices for a new runtime: by default an LWP for each CPU, stacks of 64 KiB, work stealing, no quantum.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            lwps: None,
            stack_size: 64 << 10,
            policy: Policy::default(),
            quantum: None,
            realtime_reactor: false,
            on_deadlock: Some(Arc::new(deadlock::say)),
        }
    }

    /// Runs `main` as a user thread named `main`, and returns what it returns.
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

    /// Creates a user thread from outside.
    pub fn spawn<T: Send + 'static>(&self, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        Builder::new().spawn_on(self.shared, body)
    }

    /// Whether the reactor's LWP is of the real-time class: `false` if the builder was not asked for it.
    ///
    /// # Errors
    /// Why the kernel refused, as a rule `PermissionDenied`. The runtime goes on without.
    pub fn is_reactor_realtime(&self) -> io::Result<bool> {
        self.shared.reactor.is_realtime()
    }
}

impl RuntimeBuilder {
    /// How many LWPs carry the user threads; at least 1.
    #[must_use]
    pub fn lwps(mut self, lwps: usize) -> RuntimeBuilder {
        self.lwps = Some(lwps.clamp(1, usize::from(u16::MAX)));
        self
    }

    /// Bytes of stack for each user thread, beside its guard page. A stack takes memory only as far as it is used.
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

    /// The longest that a user thread runs while others are ready: it then leaves at its next safe point, that is a
    /// call of this crate that can switch, or [`checkpoint`](crate::checkpoint). At least 100 µs.
    #[must_use]
    pub fn quantum(mut self, quantum: Duration) -> RuntimeBuilder {
        self.quantum = Some(quantum.max(Duration::from_micros(100)));
        self
    }

    /// Lets the kernel run the reactor's LWP ahead of all ordinary ones, of other processes too (SCHED_FIFO): for
    /// [`Priority::Urgent`] threads that shall also run at once where more LWPs want to run than there are CPUs. This
    /// wants CAP_SYS_NICE, or an RLIMIT_RTPRIO of 1 at least; without, the runtime does without, and
    /// [`Runtime::is_reactor_realtime`] says so. An urgent thread that never blocks then takes a CPU from everybody.
    #[must_use]
    pub fn realtime_reactor(mut self, realtime: bool) -> RuntimeBuilder {
        self.realtime_reactor = realtime;
        self
    }

    /// What happens when all user threads are blocked and nothing that this runtime knows of can unpark one: `handler`
    /// is called, once, on an LWP. By default the report is printed on standard error. A plain thread may still
    /// unpark a user thread, so the runtime goes on waiting.
    #[must_use]
    pub fn on_deadlock(mut self, handler: impl Fn(&Deadlock) + Send + Sync + 'static) -> RuntimeBuilder {
        self.on_deadlock = Some(Arc::new(handler));
        self
    }

    /// Starts the LWPs. Under `sigmund record`, they are recorded from their first instruction here on.
    ///
    /// # Errors
    /// When the kernel gives no more threads, or the process shall be recorded and cannot.
    pub fn build(self) -> io::Result<Runtime> {
        if let session::Init::Failed(error) = session::init() {
            return Err(error.into());
        }
        overflow::watch();
        let lwps = self.lwps.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
        let queues = || Queues {
            newest_first: Deque::new(QUEUE_LEN, lwps == 1),
            oldest_first: Deque::new(QUEUE_LEN, lwps == 1),
            inbox: SharedQueue::default(),
        };
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            policy: self.policy,
            queues: std::iter::repeat_with(queues).take(lwps).collect(),
            desks: (0..lwps).map(|_| lwp::Desk::default()).collect(),
            any: SharedQueue::default(),
            urgent: SharedQueue::default(),
            background: SharedQueue::default(),
            idle: Idle::new(lwps, Fences::of_this_kernel()),
            spins: if lwps == 1 { 1 } else { 30 },
            stacks: StackPool::new(self.stack_size),
            blocking: BlockingPool::default(),
            reactor: Reactor::new(self.quantum, self.realtime_reactor),
            has_quanta: self.quantum.is_some(),
            in_blocking: AtomicUsize::new(0),
            next_home: AtomicUsize::new(0),
            shut_down: AtomicBool::new(false),
            on_deadlock: self.on_deadlock,
            told_deadlock: AtomicBool::new(false),
        }));
        let mut runtime = Runtime { shared, lwps: Vec::new() };
        for number in 0..lwps {
            let lwp = thread::Builder::new().name(format!("lwp/{number}"));
            runtime.lwps.push(lwp.spawn(move || lwp::work(shared, number))?);
        }
        if self.quantum.is_some() || self.realtime_reactor {
            shared.reactor.start(shared)?;
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
            .field("quantum", &self.quantum)
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
        self.shared.shut_down.store(true, Ordering::Relaxed);
        self.shared.idle.wake_all();
        for lwp in self.lwps.drain(..) {
            // An LWP does not panic: user threads are caught. If one did, its threads are lost and we go on.
            let _ = lwp.join();
        }
        self.shared.blocking.shut_down();
        self.shared.reactor.shut_down();
    }
}
