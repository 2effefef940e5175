//! Rows of a super-trace's tables in compact form. The meaning of the columns is in `sigmund_model::tables`.

use sigmund_model::{EndReason, LwpState, ThreadState, WaitKind};

use super::{events::EventAt, words::Word};
use crate::Interval;

/// A state of a user thread: a row of `thread_states`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStay {
    /// The state.
    pub state: ThreadState,
    /// The LWP it is mounted on.
    pub lwp: Option<u32>,
    /// What it waits for, if it is blocked and the runtime recorded it.
    pub waits_for: Option<WaitKind>,
    /// The address, user thread or descriptor that it waits for; 0 if the runtime did not record it.
    pub object: i64,
    /// What ended it; `None` if nothing did.
    pub end: Option<EndReason>,
}

impl ThreadStay {
    /// Whether it is not known what the thread did.
    pub(crate) fn is_unknown(&self) -> bool {
        self.state == ThreadState::Unknown
    }
}

/// A state of an LWP: a row of `lwp_states`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LwpStay {
    /// The state.
    pub state: LwpState,
    /// The CPU it runs on, waits for or left, as the table has it.
    pub cpu: Option<u32>,
    /// What ended it; `None` if nothing did.
    pub end: Option<EndReason>,
}

impl LwpStay {
    /// Whether it is not known what the LWP did.
    pub(crate) fn is_unknown(&self) -> bool {
        self.state == LwpState::Unknown
    }
}

/// What a CPU was doing when it woke something: the column `context` of `wakeups`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// It ran an LWP.
    Task,
    /// It handled an interrupt.
    Irq,
    /// It handled a softirq.
    Softirq,
    /// It handled a non-maskable interrupt.
    Nmi,
    /// It was idle.
    Idle,
    /// Not known.
    Unknown,
}

impl Context {
    /// By its word in the table.
    pub fn from_name(word: &str) -> Context {
        match word {
            "task" => Context::Task,
            "irq" => Context::Irq,
            "softirq" => Context::Softirq,
            "nmi" => Context::Nmi,
            "idle" => Context::Idle,
            _ => Context::Unknown,
        }
    }

    /// Whether it handled an interrupt of any kind.
    pub fn is_interrupt(self) -> bool {
        matches!(self, Context::Irq | Context::Softirq | Context::Nmi)
    }

    /// Its word in the table.
    pub fn name(self) -> &'static str {
        match self {
            Context::Task => "task",
            Context::Irq => "irq",
            Context::Softirq => "softirq",
            Context::Nmi => "nmi",
            Context::Idle => "idle",
            Context::Unknown => "unknown",
        }
    }
}

/// A row of `wakeups`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// When.
    pub tick: i64,
    /// Whether the runtime unparked a user thread; else the kernel woke an LWP.
    pub is_unpark: bool,
    /// What the waking CPU was doing.
    pub context: Context,
    /// The LWP on the waking CPU; 0 is the idle task.
    pub waker_lwp: Option<u32>,
    /// The user thread that woke it; `None` in interrupts.
    pub waker_thread: Option<u64>,
    /// The LWP that was woken.
    pub lwp: Option<u32>,
    /// The user thread that was unparked, or that the woken LWP carries.
    pub thread: Option<u64>,
    /// The CPU it was woken from.
    pub cpu: Option<u32>,
    /// The CPU in whose run queue the LWP was put.
    pub target_cpu: Option<u32>,
    /// Ticks until it ran, if that was seen.
    pub latency: Option<i64>,
}

/// A row of `interrupts`, of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// From the entry of its handler to the exit.
    pub interval: Interval,
    /// The CPU.
    pub cpu: u32,
    /// irq, softirq, timer, ipi, vector or nmi.
    pub kind: Word,
    /// Its number.
    pub number: Option<i64>,
    /// Its handler.
    pub name: Option<Word>,
    /// The LWP that it interrupted.
    pub lwp: Option<u32>,
    /// The user thread that it interrupted.
    pub thread: Option<u64>,
    /// Interrupts of this CPU that it is inside of.
    pub depth: u32,
    /// What ended it.
    pub end: EndReason,
}

/// A row of `syscalls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// From entry to exit.
    pub interval: Interval,
    /// The LWP.
    pub lwp: u32,
    /// The user thread that was mounted at the entry.
    pub thread: Option<u64>,
    /// Its name, or its number as text if it has none.
    pub name: Word,
    /// What it returned, if it did.
    pub ret: Option<i64>,
    /// The part of it in which the LWP was on no CPU, if known.
    pub off_cpu: Option<i64>,
    /// What ended it.
    pub end: EndReason,
}

/// A row of `spans`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From begin to end.
    pub interval: Interval,
    /// The user thread; `None` for one of an LWP without user threads.
    pub thread: Option<u64>,
    /// The LWP on which it began.
    pub lwp: Option<u32>,
    /// Whether it is a traced function; else a span that the program named.
    pub is_function: bool,
    /// Its name.
    pub name: Option<Word>,
    /// Spans and functions of the same thread that it is inside of.
    pub depth: u32,
    /// The part of it in which its thread was active, if known.
    pub active: Option<i64>,
    /// Where it is in the source: FILE:LINE.
    pub source: Option<Word>,
    /// What ended it.
    pub end: EndReason,
}

/// A row of `locks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest {
    /// When.
    pub tick: i64,
    /// Ticks until it was acquired, if known; 0 if it was not contended.
    pub wait: Option<i64>,
    /// Ticks that it was held after that, where holds were recorded.
    pub hold: Option<i64>,
    /// The user thread.
    pub thread: Option<u64>,
    /// The LWP that it was on.
    pub lwp: Option<u32>,
    /// The CPU that it was on.
    pub cpu: Option<u32>,
    /// The lock's address.
    pub object: i64,
    /// mutex, rwlock-read, rwlock-write, futex, or a kind of the kernel's own locks.
    pub kind: Word,
    /// The user thread that held it when the wait began.
    pub holder: Option<u64>,
    /// The LWP that held it then, if that carries no user threads.
    pub holder_lwp: Option<u32>,
    /// Whether it had to wait.
    pub is_contended: bool,
    /// The innermost span or function that the request was made in.
    pub call_site: Option<Word>,
    /// What ended it.
    pub end: EndReason,
}

/// Events are missing: a row of `losses` of severity gap or serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From the last instant before it to the first instant after it. If one is unknown, the beginning or end of the
    /// trace is used.
    pub interval: Interval,
    /// The CPU, if events of a single CPU are missing.
    pub cpu: Option<u32>,
    /// The LWP, if user events of a single LWP are missing.
    pub lwp: Option<u32>,
    /// Whether it sums up several contradictions, from the first to the last. Most states in between are known then,
    /// and the others are `unknown`.
    pub is_sum: bool,
}

/// A page fault. There is no event for the end of its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where and when.
    pub at: EventAt,
    /// Whether code in user mode caused it. If not, the kernel did, usually in a system call.
    pub is_user: bool,
}

/// An event for a question about pairs: FROM or TO selects it, or both do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub tick: i64,
    /// The CPU it was on.
    pub cpu: Option<u32>,
    /// What that CPU was doing: the column `context` of `events`.
    pub context: Context,
    /// The LWP on that CPU.
    pub lwp: Option<u32>,
    /// The user thread that the LWP carried.
    pub thread: Option<u64>,
    /// The LWP that it switches in, wakes or creates. The event counts as an event of this LWP, too.
    pub target_lwp: Option<u32>,
    /// The user thread that it dispatches, wakes or creates. The event counts as an event of this thread, too.
    pub target_thread: Option<u64>,
    /// A number that is the same for events with the same name and the same values of the fields in the selector.
    pub key: u64,
    /// Whether FROM selects it.
    pub is_from: bool,
    /// Whether TO selects it.
    pub is_to: bool,
}
