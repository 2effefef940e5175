//! Events: how they are declared, what one of them says, and what it does to the state of the machine.

use std::io;

use crate::{Cpu, Loss, Lwp, LwpState, Params, Pid, PrevState, Thread, Ticks, Wait, state::named};

named! {
    /// Which of the two schedulers' sides recorded an event.
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
    /// The type of a declared field. A text is counted bytes; everything else is one 64-bit slot.
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
    /// Its name, as in `sched_switch.next_pid`.
    pub name: String,
    /// What its slot holds.
    pub ty: FieldType,
}

/// The declaration of an event. It travels in the trace, so that a tool needs no special knowledge of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventType {
    /// Which side records it.
    pub level: Level,
    /// Its number within its source; `None` where the source has only names.
    pub code: Option<u32>,
    /// Its name.
    pub name: String,
    /// The key bits that switch it on (user events).
    pub key: u64,
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// A format for people, `received {len} bytes`; empty if it has none.
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
        /// The event does not say (a listing), or no thread was mounted.
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
    /// That there is none.
    None,
    /// This one.
    Some(T),
}

/// What an event does to the state that the merge keeps: who is on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// The kernel puts `next` on the event's CPU, in place of the event's LWP.
    KernelSwitch {
        /// Who left, if the event says so itself.
        prev: Option<Lwp>,
        /// What became of the one that left; `None` if the source does not say.
        prev_state: Option<PrevState>,
        /// Who is on the CPU from now on; [`Lwp::IDLE`] is the idle task.
        next: Lwp,
    },
    /// The event's LWP leaves the event's CPU; who comes next is not known.
    LwpLeave {
        /// What becomes of it.
        state: LwpState,
    },
    /// The event's LWP is on the event's CPU from now on.
    LwpArrive,
    /// Somebody is about to make this LWP runnable.
    LwpWaking(Lwp),
    /// This LWP became runnable.
    LwpWakeup {
        /// Which.
        lwp: Lwp,
        /// In whose run queue, if the source says.
        cpu: Option<Cpu>,
    },
    /// This LWP, which is runnable, was moved to the run queue of another CPU.
    LwpMigrate {
        /// Which.
        lwp: Lwp,
        /// To where.
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
    /// The event's LWP stops carrying user threads. It has measured its own time on CPUs.
    LwpDetach {
        /// `CLOCK_THREAD_CPUTIME_ID` at this instant, if it was read.
        cpu_time_ns: Option<u64>,
    },
    /// The runtime puts `next` on the event's LWP.
    UserSwitch {
        /// Who is mounted from now on.
        next: Option<Thread>,
        /// Why the one before left.
        reason: LeaveReason,
        /// What it waits for, if it blocked and the source says.
        wait: Wait,
    },
    /// This user thread was created.
    ThreadNew(Thread),
    /// This user thread was made ready.
    ThreadReady(Thread),
    /// The event's CPU enters the handler of this interrupt (sources without context flags).
    InterruptEnter(i64),
    /// It leaves it.
    InterruptExit(i64),
}

/// One event, as a source tells it. Streams refill the same one, so that reading allocates nothing.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, on the main clock.
    pub tick: Ticks,
    /// Index of its declaration among its source's event types.
    pub kind: u32,
    /// The CPU it was recorded on (kernel), or that the probe saw (user).
    pub cpu: Option<Cpu>,
    /// The LWP it was recorded by.
    pub lwp: Option<Lwp>,
    /// The user thread that the source itself says was mounted.
    pub thread: Reported<Thread>,
    /// What the CPU was doing.
    pub context: Context,
    /// What it does to the state.
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
    /// Fills `event` with the next event; `false` at the end, `event` is then unspecified.
    ///
    /// # Errors
    /// Only what ends the stream for good. Damage that costs a part of it is skipped and becomes a loss.
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool>;

    /// What was found missing since this was last asked. Ask until the stream has ended.
    fn take_losses(&mut self) -> Vec<Loss>;

    /// Whether [`take_losses`](Self::take_losses) would give any, which most streams know at less cost. `true` if that is
    /// not known.
    fn may_have_losses(&self) -> bool {
        true
    }
}
