//! One thing that changes at one instant; and who wants to hear of it.

use std::io;

use sigmund_model::{Context, Cpu, LwpState, Params, ThreadState, Ticks, WaitKind};

use super::{CpuId, EventTypeId, LwpId, ProcessId, ThreadId};

/// Writes what it hears into a file. What it may rely on is told in the [module](super).
pub trait Sink {
    /// Something changes at this instant.
    ///
    /// # Errors
    /// When it cannot be written.
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()>;

    /// Nothing follows: everything goes to the file.
    ///
    /// # Errors
    /// When it cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        (**self).change(tick, change)
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        (**self).change(tick, change)
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

/// Where something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    /// A CPU.
    Cpu(CpuId),
    /// An LWP.
    Lwp(LwpId),
    /// A user thread.
    Thread(ThreadId),
}

/// What changes.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// This CPU goes on with this LWP; with `None` it is idle, or it is not known.
    CpuLwp(CpuId, Option<LwpId>),
    /// This CPU goes on executing this user thread; with `None`, anything else.
    CpuThread(CpuId, Option<ThreadId>),
    /// This LWP goes on with this user thread mounted, on a CPU or not.
    LwpThread(LwpId, Option<ThreadId>),
    /// An LWP is in this state from now on. It never is [`LwpState::Exited`]: that is `None`.
    Lwp {
        /// Which.
        lwp: LwpId,
        /// Its state.
        state: Option<LwpState>,
        /// The CPU it runs on, or left.
        cpu: Option<CpuId>,
    },
    /// A user thread is in this state from now on. It never is [`ThreadState::Exited`]: that is `None`.
    Thread {
        /// Which.
        thread: ThreadId,
        /// Its state.
        state: Option<ThreadState>,
        /// The LWP it is mounted on.
        lwp: Option<LwpId>,
        /// The CPU, if it is active.
        cpu: Option<CpuId>,
        /// The object it waits for, if it is blocked and the runtime said.
        blocked_on: Option<i64>,
        /// What kind of thing that is, if it is blocked and the runtime said. With the state it is a
        /// [`DetailedState`](super::Doing).
        blocked_for: Option<WaitKind>,
    },
    /// A slice begins, inside of those that are open on its track.
    Enter(Track, Slice<'a>),
    /// The innermost slice that is open on this track ends. Its kind, for those who keep kinds apart.
    Leave(Track, SliceKind),
    /// Somebody made somebody runnable, or ready.
    Wakeup {
        /// Who did it: the user thread that was executing, or the LWP, or in an interrupt the CPU; if it is known.
        by: Option<Track>,
        /// Whom: an LWP or a user thread.
        of: Track,
    },
    /// Somebody goes on elsewhere: an LWP on another CPU, a user thread on another LWP. The instant is the arrival.
    Migration {
        /// Who.
        of: Track,
        /// Where it was before.
        from: Track,
        /// Where it is from now on.
        to: Track,
    },
    /// A counter has this value from now on.
    Count(Counter, u64),
    /// Somebody has taken a lock.
    Locked {
        /// Who.
        by: Track,
        /// Which, and the number of this hold.
        hold: Hold,
    },
    /// Somebody gives back a lock that was taken.
    Unlocked {
        /// Who has taken it.
        by: Track,
        /// As it was told when it was taken.
        hold: Hold,
    },
    /// An event, as it was recorded.
    Event(&'a RecordedEvent<'a>),
}

/// What a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SliceKind {
    /// A span that the program named; on a user thread, or on an LWP without one.
    Span,
    /// A traced function; on a user thread, or on an LWP without one.
    Function,
    /// A system call; on an LWP.
    Syscall,
    /// An interrupt's handler; on a CPU.
    Irq,
    /// A softirq's handler; on a CPU.
    Softirq,
}

impl SliceKind {
    /// All of them.
    pub const ALL: [SliceKind; 5] =
        [SliceKind::Span, SliceKind::Function, SliceKind::Syscall, SliceKind::Irq, SliceKind::Softirq];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            SliceKind::Span => "span",
            SliceKind::Function => "function",
            SliceKind::Syscall => "syscall",
            SliceKind::Irq => "irq",
            SliceKind::Softirq => "softirq",
        }
    }
}

/// What begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// What it is.
    pub kind: SliceKind,
    /// Its name: the span's, the function's, `read`, `irq 24 eth0`, `TIMER`. It may hold any character.
    pub name: &'a str,
}

/// Something that is counted over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Ready user threads of a process.
    ReadyQueue(ProcessId),
    /// Runnable LWPs that wait for a CPU, in the run queue of this one as far as the trace tells.
    RunQueue(CpuId),
}

/// A lock that somebody holds for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Holds are numbered from 1, in the order in which they begin.
    pub number: u64,
    /// Locks are numbered from 0, in the order in which they occur first. Those of two processes are two, whatever their
    /// addresses are.
    pub lock: u32,
    /// Its address.
    pub address: u64,
    /// What kind of lock it is, and how it is held: what a thread that waits for it is blocked for.
    pub kind: WaitKind,
}

/// An event, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordedEvent<'a> {
    /// Its declaration; with it come its level, its name and its fields.
    pub kind: EventTypeId,
    /// The CPU it happened on.
    pub cpu: Option<CpuId>,
    /// The LWP that was on that CPU; `None` also for the idle task.
    pub lwp: Option<LwpId>,
    /// The user thread that was executing.
    pub thread: Option<ThreadId>,
    /// What the CPU was doing.
    pub context: Option<Context>,
    /// The CPU that a probe saw itself.
    pub cpu_seen: Option<Cpu>,
    /// Its parameters, one for each declared field.
    pub params: &'a Params,
}

impl RecordedEvent<'_> {
    /// The narrowest track that it belongs to: of the user thread, or of the LWP; of the CPU, in an interrupt or when
    /// nobody else is known; `None` if nothing is known.
    pub fn track(&self) -> Option<Track> {
        let in_interrupt =
            matches!(self.context, Some(Context::Irq | Context::Softirq | Context::Nmi | Context::Idle));
        let cpu = self.cpu.map(Track::Cpu);
        if in_interrupt && cpu.is_some() {
            return cpu;
        }
        self.thread.map(Track::Thread).or(self.lwp.map(Track::Lwp)).or(cpu)
    }
}
