//! A change at an instant, and the trait that receives changes.

use std::io;

use sigmund_model::{Context, Cpu, LwpState, Params, ThreadState, Ticks, WaitKind};

use super::{CpuId, EventTypeId, LwpId, ProcessId, ThreadId};

/// Receives the changes of a timeline, which obey the rules of the [module](super).
pub trait Sink {
    /// Receives a change at this instant.
    ///
    /// # Errors
    /// If it cannot be written.
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()>;

    /// Whether it ignores all changes except [`Change::Event`], so that only events need be read.
    fn needs_events_only(&self) -> bool {
        false
    }

    /// Completes the output. No change follows.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        (**self).change(tick, change)
    }

    fn needs_events_only(&self) -> bool {
        (**self).needs_events_only()
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        (**self).change(tick, change)
    }

    fn needs_events_only(&self) -> bool {
        (**self).needs_events_only()
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

/// The actor to which a slice or an event belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    /// A CPU.
    Cpu(CpuId),
    /// An LWP.
    Lwp(LwpId),
    /// A user thread.
    Thread(ThreadId),
}

/// A change at an instant.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// This CPU runs this LWP from now on; `None`: it is idle, or unknown.
    CpuLwp(CpuId, Option<LwpId>),
    /// This CPU executes this user thread from now on; `None`: no user thread.
    CpuThread(CpuId, Option<ThreadId>),
    /// This user thread is mounted on this LWP from now on, on a CPU or not.
    LwpThread(LwpId, Option<ThreadId>),
    /// An LWP is in this state from now on; `None` instead of [`LwpState::Exited`].
    Lwp {
        /// The actor.
        lwp: LwpId,
        /// Its state.
        state: Option<LwpState>,
        /// The CPU it runs on, or left.
        cpu: Option<CpuId>,
    },
    /// A user thread is in this state from now on; `None` instead of [`ThreadState::Exited`].
    Thread {
        /// The actor.
        thread: ThreadId,
        /// Its state.
        state: Option<ThreadState>,
        /// The LWP it is mounted on.
        lwp: Option<LwpId>,
        /// The CPU, if it is active.
        cpu: Option<CpuId>,
        /// The object it waits for, if it is blocked and the runtime recorded it.
        blocked_on: Option<i64>,
        /// The kind of wait, if it is blocked and the runtime recorded it. Together with the state it is a
        /// [`DetailedState`](super::DetailedState).
        blocked_for: Option<WaitKind>,
    },
    /// A slice begins. It nests in the open slices of its track.
    Enter(Track, Slice<'a>),
    /// The innermost open slice of this track ends. The kind is that slice's.
    Leave(Track, SliceKind),
    /// An LWP becomes runnable, or a user thread ready.
    Wakeup {
        /// The waker: the user thread that was executing, or the LWP, or in an interrupt the CPU; if known.
        by: Option<Track>,
        /// The woken LWP or user thread.
        of: Track,
    },
    /// An LWP continues on another CPU, or a user thread on another LWP. The instant is the arrival.
    Migration {
        /// The actor.
        of: Track,
        /// The CPU or LWP that it left.
        from: Track,
        /// The CPU or LWP on which it continues.
        to: Track,
    },
    /// A counter has this value from now on.
    Count(Counter, u64),
    /// A lock is acquired: a hold begins.
    Locked {
        /// The actor.
        by: Track,
        /// The lock, and the number of this hold.
        hold: Hold,
    },
    /// A lock is released: a hold ends.
    Unlocked {
        /// The actor that acquired it.
        by: Track,
        /// The same as in [`Change::Locked`].
        hold: Hold,
    },
    /// An event, as it was recorded.
    Event(&'a RecordedEvent<'a>),
}

/// The kind of a slice.
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

    /// Its name: `span`, `syscall`.
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

/// A slice that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// Its kind.
    pub kind: SliceKind,
    /// The name of the span or function, or `read`, `irq 24 eth0`, `TIMER`. It may contain any character.
    pub name: &'a str,
}

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Ready user threads of a process.
    ReadyQueue(ProcessId),
    /// Runnable LWPs in the run queue of this CPU, as far as known.
    RunQueue(CpuId),
}

/// A lock, from acquisition to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Holds are numbered from 1, in the order in which they begin.
    pub number: u64,
    /// Locks are numbered from 0, in the order of first occurrence. Locks of two processes are different, even with the
    /// same address.
    pub lock: u32,
    /// Its address.
    pub address: u64,
    /// The kind of lock and of access, as the kind of wait of a thread that is blocked by it.
    pub kind: WaitKind,
}

/// An event, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordedEvent<'a> {
    /// Its declaration: level, name and fields.
    pub kind: EventTypeId,
    /// The CPU on which it occurred.
    pub cpu: Option<CpuId>,
    /// The LWP on that CPU; `None` also for the idle task.
    pub lwp: Option<LwpId>,
    /// The user thread that was executing.
    pub thread: Option<ThreadId>,
    /// The context of the CPU: task, interrupt …
    pub context: Option<Context>,
    /// The CPU that the probe read.
    pub cpu_seen: Option<Cpu>,
    /// Its parameters, one for each declared field.
    pub params: &'a Params,
}

impl RecordedEvent<'_> {
    /// The most specific known track: the user thread's, otherwise the LWP's, otherwise the CPU's. In an interrupt, the
    /// CPU's if it is known.
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
