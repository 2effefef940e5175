//! Events: how they are declared, what one event contains, and its effect on the state of the machine.

use std::io;

use crate::{Cpu, Loss, Lwp, LwpState, Params, Pid, PrevState, Thread, Ticks, Wait, state::named};

named! {
    /// The side that recorded an event.
    Level {
        /// The kernel.
        Kern = "KERN",
        /// The program.
        User = "USER",
    }
}

named! {
    /// What the CPU was doing when the event was recorded.
    Context {
        /// Running an LWP.
        Task = "task",
        /// In an interrupt handler: belongs to no user thread.
        Irq = "irq",
        /// In a softirq: belongs to no user thread.
        Softirq = "softirq",
        /// In a non-maskable interrupt: belongs to no user thread.
        Nmi = "nmi",
        /// In the idle task.
        Idle = "idle",
    }
}

impl Context {
    /// Whether an LWP, and perhaps a user thread, was executing.
    pub fn is_task(self) -> bool {
        self == Context::Task
    }
}

named! {
    /// The type of a declared field. A text is a counted string; everything else is one 64-bit slot.
    FieldType {
        /// Unsigned, 8 bits.
        U8 = "u8",
        /// Unsigned, 16 bits.
        U16 = "u16",
        /// Unsigned, 32 bits.
        U32 = "u32",
        /// Unsigned, 64 bits.
        U64 = "u64",
        /// Signed, any width up to 64 bits.
        I64 = "i64",
        /// Floating point; its slot holds the bits.
        F64 = "f64",
        /// 0 or 1.
        Bool = "bool",
        /// An address.
        Pointer = "pointer",
        /// A text.
        Text = "text",
        /// The id of a user thread; 0 is none.
        Thread = "thread",
    }
}

impl FieldType {
    /// The type of this name, as [`name`](Self::name) writes it.
    pub fn from_name(name: &str) -> Option<FieldType> {
        FieldType::ALL.iter().copied().find(|t| t.name() == name)
    }
}

/// One declared field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name, for example `next_pid` of `sched_switch`.
    pub name: String,
    /// What its slot holds.
    pub ty: FieldType,
}

/// The declaration of an event. It is part of the trace, so that a tool needs no built-in knowledge of the event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventType {
    /// Which side records it.
    pub level: Level,
    /// Its number within its source; `None` if the source has only names.
    pub code: Option<u32>,
    /// Its name.
    pub name: String,
    /// The key bits that switch it on (user events).
    pub key: u64,
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// A format for human output, `received {len} bytes`; empty if it has none.
    pub format: String,
}

impl EventType {
    /// Position of the field of this name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}

named! {
    /// Why a user thread left its LWP.
    LeaveReason {
        /// The event does not have it (a listing), or no thread was mounted.
        Unknown = "unknown",
        /// It yielded.
        Yield = "yield",
        /// Its quantum was over.
        Quantum = "quantum",
        /// It blocked.
        Block = "block",
        /// It exited.
        Exit = "exit",
    }
}

impl LeaveReason {
    /// The reason with this number in a user trace; unknown numbers are [`LeaveReason::Unknown`].
    pub fn from_number(number: u64) -> LeaveReason {
        usize::try_from(number)
            .ok()
            .and_then(|n| LeaveReason::ALL.get(n).copied())
            .unwrap_or(LeaveReason::Unknown)
    }
}

/// What a source reports explicitly about something that the merge can also infer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported<T> {
    /// Nothing: infer it.
    Nothing,
    /// Explicitly none.
    None,
    /// This one.
    Some(T),
}

/// The effect of an event on the state that the merge keeps: what runs where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// The kernel puts `next` on the event's CPU, in place of the event's LWP.
    KernelSwitch {
        /// The LWP that is switched out, if the event has it.
        prev: Option<Lwp>,
        /// The state of the LWP that is switched out; `None` if the source does not have it.
        prev_state: Option<PrevState>,
        /// The LWP that is switched in; [`Lwp::IDLE`] is the idle task.
        next: Lwp,
    },
    /// The event's LWP leaves the event's CPU; the next LWP is unknown.
    LwpLeave {
        /// The LWP's state after that.
        state: LwpState,
    },
    /// The event's LWP is on the event's CPU from now on.
    LwpArrive,
    /// This LWP is about to be made runnable.
    LwpWaking(Lwp),
    /// This LWP became runnable.
    LwpWakeup {
        /// The LWP.
        lwp: Lwp,
        /// The CPU of its run queue, if the source has it.
        cpu: Option<Cpu>,
    },
    /// This runnable LWP was moved to the run queue of another CPU.
    LwpMigrate {
        /// The LWP.
        lwp: Lwp,
        /// The CPU of the new run queue.
        cpu: Cpu,
    },
    /// This LWP was created.
    LwpNew(Lwp),
    /// The event's LWP is exiting.
    LwpExit,
    /// The event's LWP carries user threads of this process from now on.
    LwpAttach {
        /// Its process.
        pid: Pid,
        /// `CLOCK_THREAD_CPUTIME_ID` at this instant, if it was read.
        cpu_time_ns: Option<u64>,
    },
    /// The event's LWP stops carrying user threads. It has measured its own CPU time.
    LwpDetach {
        /// `CLOCK_THREAD_CPUTIME_ID` at this instant, if it was read.
        cpu_time_ns: Option<u64>,
    },
    /// The runtime puts `next` on the event's LWP.
    UserSwitch {
        /// The user thread that is mounted from now on.
        next: Option<Thread>,
        /// Why the previous user thread left.
        reason: LeaveReason,
        /// What that thread waits for, if it blocked and the source has it.
        wait: Wait,
    },
    /// This user thread was created.
    ThreadNew(Thread),
    /// This user thread was made ready.
    ThreadReady(Thread),
    /// The event's CPU enters the handler of this interrupt (sources without context flags).
    InterruptEnter(i64),
    /// It leaves that handler.
    InterruptExit(i64),
}

/// One event, as its source reports it. Streams refill the same value, so that reading does not allocate.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its time on the main clock.
    pub tick: Ticks,
    /// Index of its declaration among its source's event types.
    pub kind: u32,
    /// The CPU it was recorded on (kernel), or that the probe saw (user).
    pub cpu: Option<Cpu>,
    /// The LWP it was recorded by.
    pub lwp: Option<Lwp>,
    /// The user thread that was mounted, as the source reports it.
    pub thread: Reported<Thread>,
    /// What the CPU was doing.
    pub context: Context,
    /// Its effect on the state.
    pub effect: Effect,
    /// Its parameters, one per declared field.
    pub params: Params,
}

impl Default for Event {
    fn default() -> Event {
        Event {
            tick: Ticks(0),
            kind: 0,
            cpu: None,
            lwp: None,
            thread: Reported::Nothing,
            context: Context::Task,
            effect: Effect::None,
            params: Params::default(),
        }
    }
}

/// A source of events in the order of their ticks.
pub trait EventStream {
    /// Fills `event` with the next event. At the end it returns `false`, and the content of `event` is unspecified.
    ///
    /// # Errors
    /// Only errors that end the stream. Damage that affects a part of it is skipped and becomes a loss.
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool>;

    /// Losses found since the last call. Call it until the stream has ended.
    fn take_losses(&mut self) -> Vec<Loss>;

    /// Whether [`take_losses`](Self::take_losses) would return any. Most streams can check this more cheaply than by
    /// collecting them. `true` if unknown.
    fn may_have_losses(&self) -> bool {
        true
    }
}
