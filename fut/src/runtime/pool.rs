//! A runtime: its LWPs, what they share, and the choices for it.

use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
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
    carried::{Carried, Carries},
    deadlock::{self, Deadlock},
    discard::discard,
    lwp::{self, Choice, LwpThread, Stealable},
    reactor::Reactor,
    ready::{Bell, Fences, Home, Idle, SharedQueue},
    stack::{StackPool, overflow},
};
use crate::session;

/// Which LWP runs which ready thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Each LWP has its own ready threads, newest first, and steals from others when it has none: threads that have
    /// not begun, in a [migrating](RuntimeBuilder::migrating) runtime any. New threads and unparked ones come before those
    /// that have yielded.
    #[default]
    WorkStealing,
    /// One ready queue for all LWPs, first in, first out: the policy of the runtime that the paper traces. Threads that
    /// have begun wait for their turn in it at their LWP, unless the runtime is
    /// [migrating](RuntimeBuilder::migrating).
    SharedFifo,
    /// A user thread keeps to one LWP from its birth: that of [`Builder::lwp`], or the next in turn.
    Affinity,
}

/// How soon a user thread runs when it is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Priority {
    /// Only when nothing else is ready; once it has begun, and unless the runtime is
    /// [migrating](RuntimeBuilder::migrating), that means: nothing on its LWP, but for a turn now and then.
    Background,
    /// In its turn.
    #[default]
    Normal,
    /// Ahead of all others: the reactor's LWP runs it at once when it is ready, even if all others are busy; so it may
    /// run beside the threads of all LWPs. It begins there and stays. In a [migrating](RuntimeBuilder::migrating) runtime,
    /// the first LWP at a safe point runs it. For short handlers of rare events: while one
    /// runs without reaching a safe point, the reactor serves no other thread.
    Urgent,
}

/// What the LWPs and user threads of a runtime share. Never freed: a thread elsewhere may still unpark one of ours.
pub(super) struct Shared {
    pub(super) policy: Policy,
    /// A thread that has begun stays on its LWP.
    pub(super) is_pinned: bool,
    /// What workers may steal from each other; empty if there is one.
    pub(super) stealable: Box<[Stealable]>,
    /// One for each worker.
    pub(super) homes: Box<[Home]>,
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
    /// Whether user threads can run still.
    pub(super) carried: Carried,
    on_deadlock: Option<deadlock::Handler>,
    told_deadlock: AtomicBool,
}

/// What [`RuntimeBuilder::quantum`] may be. A longer one could not be added to a point in time.
const SHORTEST_QUANTUM: Duration = Duration::from_micros(100);
const LONGEST_QUANTUM: Duration = Duration::from_secs(24 * 60 * 60);
/// How long all LWPs must sleep before the runtime looks for a deadlock.
const PATIENCE: Duration = Duration::from_millis(200);

impl Shared {
    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Relaxed)
    }

    /// The LWP that a new thread keeps to, if that is known before it begins; `lwp` is what it wishes.
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

    /// How long the last worker to go to sleep waits before it looks for a deadlock; `None` if it was reported already.
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.on_deadlock.is_some() && !self.told_deadlock.load(Ordering::Relaxed)).then_some(PATIENCE)
    }

    /// All workers have slept for the time of `PATIENCE`.
    pub(super) fn all_asleep(&'static self) {
        let Some(handler) = &self.on_deadlock else { return };
        if let Some(deadlock) = Deadlock::find(self) {
            self.told_deadlock.store(true, Ordering::Relaxed);
            // It is the program's, and a panic of it has nobody to go to: this LWP is needed.
            discard(catch_unwind(AssertUnwindSafe(|| handler(&deadlock))));
        }
    }
}

/// User threads on a number of LWPs.
///
/// Dropping it sends the LWPs home at their next switch. User threads that have not ended by then never run again,
/// and what they own is leaked, as with threads of a process that ends. An LWP with such threads is leaked, too (it
/// sleeps), since they may have borrowed from its thread-locals. Whoever [joins](crate::JoinHandle::join) one of those
/// threads gets an error ([`RuntimeDropped`](crate::RuntimeDropped)).
///
/// One of its own user threads may drop it, too. That thread continues until it leaves its LWP, or ends before.
pub struct Runtime {
    shared: &'static Shared,
    lwps: Vec<LwpThread>,
    /// Dropped last, when it has sent its LWPs home.
    _carries: Carries,
}

/// Choices for a new runtime.
#[derive(Clone)]
pub struct RuntimeBuilder {
    lwps: Option<usize>,
    stack_size: usize,
    policy: Policy,
    is_migrating: bool,
    quantum: Option<Duration>,
    realtime_reactor: bool,
    on_deadlock: Option<deadlock::Handler>,
}

impl Runtime {
    /// Choices for a new runtime: by default an LWP for each CPU, stacks of 64 KiB, work stealing, no quantum, and user
    /// threads that stay on the LWP that began them.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            lwps: None,
            stack_size: 64 << 10,
            policy: Policy::default(),
            is_migrating: false,
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
    /// Why the kernel refused, as a rule `PermissionDenied`. The runtime continues without.
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

    /// Bytes of stack for each user thread, beside its guard page; 16 KiB at least. A stack takes memory only as far as it
    /// is used. A thread that runs off its stack touches the guard page, and the process ends with a message; but code in C
    /// whose frames are larger than a page may skip it, unless it was compiled with `-fstack-clash-protection`.
    ///
    /// Before Linux 6.13 guard pages take two memory mappings each, so that at most 28669 threads that have begun and not
    /// ended can live at a time (`vm.max_map_count`, 65530, is the measure); the process ends where more are needed.
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
    /// full M:N of the paper. All LWPs then share all work; otherwise they share what has not begun. [`Policy::Affinity`]
    /// pins threads all the same.
    ///
    /// A thread that leaves its LWP while [`std::thread::panicking`] comes back to it, since panics are counted for each
    /// LWP. Meanwhile other user threads of that LWP see `panicking()`, too, as those of a pinned runtime do.
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
    /// No code that runs in a user thread of this runtime, that of libraries included, keeps anything that belongs to a
    /// kernel thread across a call that can switch: any call of this crate that can block, any that is a safe point
    /// ([`checkpoint`](crate::checkpoint), those of [`sync`](crate::sync) and [`net`](crate::net)), and whatever calls
    /// one. Such things are
    /// - what a thread-local lends: a switch inside of [`LocalKey::with`](std::thread::LocalKey::with), a guard of a
    ///   `RefCell` in it, a reference that was made to live longer;
    /// - values that are not `Send`, on the stack or in a [`UserLocal`](crate::UserLocal), if another one of the same
    ///   family is reachable through a thread-local, or they rely on their kernel thread otherwise: an `Rc` of which a
    ///   thread-local has a clone, `ThreadRng`, the guard of a `std::sync::Mutex`, the lock of `stdout` or `stderr`;
    /// - the address of a thread-local that the compiler has kept: a function that uses one, directly or by inlining,
    ///   both before and after such a call.
    #[must_use]
    pub unsafe fn migrating(mut self) -> RuntimeBuilder {
        self.is_migrating = true;
        self
    }

    /// The longest that a user thread runs while others are ready: it then leaves at its next safe point, that is a
    /// call of this crate that can switch, or [`checkpoint`](crate::checkpoint). At least 100 µs, at most a day.
    #[must_use]
    pub fn quantum(mut self, quantum: Duration) -> RuntimeBuilder {
        self.quantum = Some(quantum.clamp(SHORTEST_QUANTUM, LONGEST_QUANTUM));
        self
    }

    /// Lets the kernel run the reactor's LWP ahead of all ordinary ones, of other processes too (SCHED_FIFO): for
    /// [`Priority::Urgent`] threads that shall also run at once where more LWPs want to run than there are CPUs. This
    /// wants CAP_SYS_NICE, or an RLIMIT_RTPRIO of 1 at least; without, the runtime does without, and
    /// [`Runtime::is_reactor_realtime`] reports it. An urgent thread that never blocks then monopolises a CPU.
    #[must_use]
    pub fn realtime_reactor(mut self, realtime: bool) -> RuntimeBuilder {
        self.realtime_reactor = realtime;
        self
    }

    /// What happens when all user threads are blocked and nothing that this runtime knows of can unpark one: `handler`
    /// is called, once, on an LWP, and not in a user thread. By default the report is printed on standard error. A plain
    /// thread may still unpark a user thread, so the runtime continues waiting, also when the handler panics. A handler that
    /// waits for a user thread keeps the LWP from it.
    #[must_use]
    pub fn on_deadlock(mut self, handler: impl Fn(&Deadlock) + Send + Sync + 'static) -> RuntimeBuilder {
        self.on_deadlock = Some(Arc::new(handler));
        self
    }

    /// Starts the LWPs, and the reactor. Under `sigmund record`, they are recorded from their first instruction here on. A
    /// process that shall be recorded and cannot be runs without; [`init`](crate::init) reports it once on standard error.
    ///
    /// What a runtime needs of the kernel to wait for time and I/O it has from here on: a thread, and three descriptors
    /// that are given back when it is dropped.
    ///
    /// # Errors
    /// When the kernel gives no more threads, descriptors or memory for stacks.
    pub fn build(self) -> io::Result<Runtime> {
        let _ = session::init();
        let reactor = Reactor::new(self.quantum, self.realtime_reactor)?;
        let stacks = StackPool::new(self.stack_size)?;
        overflow::watch();
        let lwps = self.lwps.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
        let (choices, stealable) = Choice::of_workers(lwps);
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            policy: self.policy,
            is_pinned: !self.is_migrating || self.policy == Policy::Affinity,
            stealable,
            homes: (0..lwps).map(|number| Home::new(Bell::Worker(number))).collect(),
            desks: (0..lwps).map(|_| lwp::Desk::default()).collect(),
            any: SharedQueue::default(),
            urgent: SharedQueue::default(),
            background: SharedQueue::default(),
            idle: Idle::new(lwps, Fences::of_this_kernel()),
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
            told_deadlock: AtomicBool::new(false),
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
        // One of its own user threads may do this. Its LWP cannot wait for itself, and ends at its next switch.
        self.lwps.drain(..).filter(|lwp| !lwp.is_current()).for_each(LwpThread::join);
        self.shared.blocking.shut_down();
        self.shared.reactor.shut_down();
    }
}
