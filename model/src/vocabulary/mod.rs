//! What events mean, by the names that kernels, tracers and runtimes give them.
//!
//! A table (`rows.rs`) has a row for each event whose meaning is known. The row has the event's name, its meaning, and
//! the role of each of its fields. Readers use the table to find the effect of an event on the state; the merge uses it
//! to pair events to intervals. To support a new source, add rows.
//!
//! ```
//! use sigmund_model::vocabulary::{KnownEvent, Meaning, Role};
//! use sigmund_model::{EventType, Field, FieldType, Level};
//!
//! let field = |name: &str, ty| Field { name: name.into(), ty };
//! let waking = EventType {
//!     level: Level::Kern,
//!     code: Some(316),
//!     name: "sched_waking".into(),
//!     key: 0,
//!     fields: vec![field("comm", FieldType::Text), field("pid", FieldType::I64)],
//!     format: String::new(),
//! };
//! let known = KnownEvent::of(&waking).unwrap();
//! assert_eq!((known.meaning(), known.field(Role::Lwp)), (Meaning::Waking, Some(1)));
//! ```

mod rows;

use crate::{EventType, Level};

/// What an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// The kernel switches from one LWP to another: [`Role::PrevLwp`], [`Role::PrevState`], [`Role::NextLwp`].
    Switch,
    /// An LWP is about to be made runnable: [`Role::Lwp`].
    Waking,
    /// An LWP was made runnable: [`Role::Lwp`], [`Role::TargetCpu`].
    Wakeup,
    /// A runnable LWP is moved to another run queue: [`Role::Lwp`], [`Role::TargetCpu`].
    Migrate,
    /// An LWP is created: [`Role::Lwp`].
    LwpNew,
    /// The LWP that records the event is exiting; or [`Role::Lwp`], if the event has it.
    LwpExit,
    /// Names the process of an LWP: [`Role::Lwp`], [`Role::Process`].
    LwpOfProcess,
    /// An LWP is about to be created, in its creator's process or as the leader of a new one: [`Role::Lwp`],
    /// [`Role::CloneFlags`].
    Clone,
    /// A program is executed: [`Role::Lwp`] is the LWP's number from now on, [`Role::OldLwp`] its number before.
    Exec,
    /// An interrupt handler begins: [`Role::Number`], [`Role::Name`].
    InterruptEnter(InterruptKind),
    /// An interrupt handler ends.
    InterruptExit(InterruptKind),
    /// A non-maskable interrupt has ended, after [`Role::DurationNs`].
    NmiHandled,
    /// A system call begins: [`Role::Number`]; its arguments are [`Role::Argument`] and the fields that follow it.
    SyscallEnter,
    /// A system call ends: [`Role::Number`], [`Role::Return`].
    SyscallExit,
    /// A page fault of code in user mode.
    UserFault,
    /// A page fault of the kernel, mostly in a system call that reads or writes the program's memory.
    KernelFault,
    /// The runtime switches to another user thread: [`Role::Thread`], [`Role::Reason`], [`Role::Object`],
    /// [`Role::WaitKind`].
    UserSwitch,
    /// A user thread is created: [`Role::Thread`].
    ThreadNew,
    /// A user thread is made ready: [`Role::Thread`].
    ThreadReady,
    /// An LWP begins to carry user threads: [`Role::CpuTimeNs`].
    LwpAttach,
    /// An LWP stops carrying user threads: [`Role::CpuTimeNs`].
    LwpDetach,
    /// A span begins: [`Role::Code`].
    SpanBegin,
    /// A span ends.
    SpanEnd,
    /// A function begins: [`Role::Code`].
    FunctionEnter(FunctionKey),
    /// A function returns.
    FunctionExit(FunctionKey),
    /// A lock was acquired: [`Role::Object`], [`Role::WaitKind`].
    LockAcquire,
    /// A lock is about to be released.
    LockRelease,
    /// The kernel begins to wait for one of its own locks: [`Role::Object`], [`Role::LockFlags`].
    KernelLockWait,
    /// The kernel no longer waits for one of its own locks: [`Role::Object`].
    KernelLockWaitEnd,
}

/// The kinds of interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterruptKind {
    /// A device's interrupt: `irq` numbers it.
    Irq,
    /// A softirq.
    Softirq,
    /// The local timer.
    Timer,
    /// Another CPU interrupts this one: rescheduling, function calls, deferred work.
    Ipi,
    /// Another vector of the processor.
    Vector,
    /// A non-maskable interrupt.
    Nmi,
}

impl InterruptKind {
    /// Every kind.
    pub const ALL: [InterruptKind; 6] = [
        InterruptKind::Irq,
        InterruptKind::Softirq,
        InterruptKind::Timer,
        InterruptKind::Ipi,
        InterruptKind::Vector,
        InterruptKind::Nmi,
    ];

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            InterruptKind::Irq => "irq",
            InterruptKind::Softirq => "softirq",
            InterruptKind::Timer => "timer",
            InterruptKind::Ipi => "ipi",
            InterruptKind::Vector => "vector",
            InterruptKind::Nmi => "nmi",
        }
    }
}

/// How the entry and the exit of one function call are recognised as a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKey {
    /// [`Role::Code`] holds the function's address.
    Address,
    /// [`Role::Code`] holds the name of the function, `FUNCTION at FILE:LINE`. Its addresses at entry and exit differ:
    /// they are those of two call sites.
    Name,
}

macro_rules! roles {
    ($($(#[doc = $doc:literal])* $role:ident,)*) => {
        /// What a field of an event holds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Role { $($(#[doc = $doc])* $role,)* }

        impl Role {
            /// Every role.
            pub const ALL: &[Role] = &[$(Role::$role,)*];
            const COUNT: usize = Role::ALL.len();

            /// What a field of this role holds, as a sentence.
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Role::$role => concat!($($doc),*).trim_ascii_start(),)*
                }
            }
        }
    };
}

roles! {
    /// The LWP that is switched out.
    PrevLwp,
    /// The name of that LWP, which it may have changed while it was on the CPU.
    PrevName,
    /// The state of that LWP when it is switched out.
    PrevState,
    /// The LWP that is switched in.
    NextLwp,
    /// The name of that LWP.
    NextName,
    /// The LWP that the event concerns.
    Lwp,
    /// The name of that LWP.
    LwpName,
    /// The process of that LWP.
    Process,
    /// The parent of that process.
    ParentProcess,
    /// The LWP's number before.
    OldLwp,
    /// The flags of `clone`.
    CloneFlags,
    /// Whether the LWP was the last of its process.
    LastOfProcess,
    /// The CPU of the run queue that the LWP is in.
    TargetCpu,
    /// The number of an interrupt or a system call.
    Number,
    /// The name of an interrupt's handler.
    Name,
    /// The first argument of a system call.
    Argument,
    /// The return value of a system call.
    Return,
    /// A duration in nanoseconds.
    DurationNs,
    /// The user thread that the event concerns.
    Thread,
    /// Why a user thread left its LWP, as a number of `LeaveReason`.
    Reason,
    /// The address of a lock, or of another object that a user thread waits for.
    Object,
    /// The kind of that object, as a number of `WaitKind`.
    WaitKind,
    /// The kind of a lock of the kernel, as `LCB_F_*` flags.
    LockFlags,
    /// The CPU time of the LWP so far, in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`).
    CpuTimeNs,
    /// The address and name of a span's description, or of a function.
    Code,
}

/// How an event is recognised by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// The whole name.
    Is(&'static str),
    /// A prefix; the rest is the name of a vector or system call.
    Begins(&'static str),
    /// A suffix; the rest is the name of a vector or system call.
    Ends(&'static str),
}

impl Pattern {
    /// The part of a matching name that the pattern does not fix.
    fn rest_of(self, name: &str) -> Option<&str> {
        match self {
            Pattern::Is(whole) => (name == whole).then_some(""),
            Pattern::Begins(prefix) => name.strip_prefix(prefix).filter(|rest| !rest.is_empty()),
            Pattern::Ends(suffix) => name.strip_suffix(suffix).filter(|rest| !rest.is_empty()),
        }
    }
}

/// The position of the field of each role. One byte each, so that a lookup touches few cache lines.
type Positions = [u8; Role::COUNT];

/// The position of a role that no field has.
const NONE: u8 = u8::MAX;

/// A field of an event that has a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldRow {
    role: Role,
    /// Empty if any name matches.
    name: &'static str,
    /// Its position in sources that do not name fields.
    unnamed: Option<usize>,
    /// Whether the row applies only to events that have the field.
    required: bool,
}

/// An event whose meaning is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    level: Level,
    pattern: Pattern,
    meaning: Meaning,
    fields: &'static [FieldRow],
}

impl Row {
    /// The positions of the fields, if the row applies to this event.
    fn fields_in(&self, event_type: &EventType) -> Option<Positions> {
        let mut places = [NONE; Role::COUNT];
        for field in self.fields {
            let any_name = field.name.is_empty();
            let there =
                |at: &usize| event_type.fields.get(*at).is_some_and(|f| any_name || f.name.is_empty());
            let named = if any_name { None } else { event_type.field(field.name) };
            let place = named.or_else(|| field.unnamed.filter(there));
            if place.is_none() && field.required {
                return None;
            }
            let known = &mut places[field.role as usize];
            if *known == NONE {
                *known = place.and_then(|place| u8::try_from(place).ok()).unwrap_or(NONE);
            }
        }
        Some(places)
    }
}

/// A declared event whose meaning is known, and the positions of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownEvent {
    row: &'static Row,
    fields: Positions,
}

impl KnownEvent {
    /// The meaning of a declared event. Of the rows that match its name, the first one whose required fields the event
    /// has applies.
    pub fn of(event_type: &EventType) -> Option<KnownEvent> {
        rows::ROWS
            .iter()
            .filter(|row| row.level == event_type.level && row.pattern.rest_of(&event_type.name).is_some())
            .find_map(|row| Some(KnownEvent { row, fields: row.fields_in(event_type)? }))
    }

    /// What it means.
    pub fn meaning(&self) -> Meaning {
        self.row.meaning
    }

    /// The role of the field at a position.
    pub fn role(&self, position: usize) -> Option<Role> {
        Role::ALL.iter().copied().find(|role| self.field(*role) == Some(position))
    }

    /// The position of the field with this role.
    pub fn field(&self, role: Role) -> Option<usize> {
        let position = self.fields[role as usize];
        (position != NONE).then_some(usize::from(position))
    }

    /// The part of the event's name that specifies it: `read` of `sys_enter_read`, `local_timer` of
    /// `local_timer_entry`. `None` if fields specify it instead.
    pub fn named_by<'n>(&self, event_name: &'n str) -> Option<&'n str> {
        self.row.pattern.rest_of(event_name).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, FieldType};

    fn declared(level: Level, name: &str, fields: &[&str]) -> EventType {
        let fields = fields.iter().map(|name| Field { name: name.to_string(), ty: FieldType::I64 }).collect();
        EventType { level, code: None, name: name.into(), key: 0, fields, format: String::new() }
    }

    fn kernel(name: &str, fields: &[&str]) -> Option<KnownEvent> {
        KnownEvent::of(&declared(Level::Kern, name, fields))
    }

    #[test]
    fn roles_have_sentences() {
        for role in Role::ALL {
            let text = role.sentence();
            assert!(text.ends_with('.') && text.starts_with(char::is_uppercase), "{role:?}: {text}");
        }
        let switch = kernel("sched_switch", &["prev_comm", "prev_pid", "prev_state", "next_pid"]).unwrap();
        assert_eq!([switch.role(0), switch.role(1)], [Some(Role::PrevName), Some(Role::PrevLwp)]);
    }

    #[test]
    fn one_event_has_one_meaning_whatever_its_tracer_calls_its_fields() {
        let ftrace =
            kernel("sched_process_fork", &["parent_comm", "parent_pid", "child_comm", "child_pid"]).unwrap();
        let lttng = kernel("sched_process_fork", &["child_comm", "child_tid", "child_pid"]).unwrap();
        assert_eq!((ftrace.meaning(), lttng.meaning()), (Meaning::LwpNew, Meaning::LwpNew));
        assert_eq!((ftrace.field(Role::Lwp), ftrace.field(Role::Process)), (Some(3), None));
        assert_eq!((lttng.field(Role::Lwp), lttng.field(Role::Process)), (Some(1), Some(2)));
    }

    #[test]
    fn an_event_without_the_field_that_makes_it_known_is_not() {
        assert_eq!(kernel("sched_switch", &["prev_pid"]), None);
        assert_eq!(kernel("page_entry", &["address"]), None);
        assert_eq!(KnownEvent::of(&declared(Level::User, "sched_switch", &["prev_pid", "next_pid"])), None);
    }

    #[test]
    fn names_of_calls_and_vectors_are_parts_of_the_names_of_events() {
        let read = kernel("sys_enter_read", &["__syscall_nr", "fd", "buf"]).unwrap();
        assert_eq!((read.meaning(), read.named_by("sys_enter_read")), (Meaning::SyscallEnter, Some("read")));
        assert_eq!((read.field(Role::Number), read.field(Role::Argument)), (Some(0), None));
        let any = kernel("sys_enter", &["id", "args0", "args1"]).unwrap();
        assert_eq!((any.named_by("sys_enter"), any.field(Role::Argument)), (None, Some(1)));
        let timer = kernel("local_timer_entry", &["vector"]).unwrap();
        assert_eq!(timer.meaning(), Meaning::InterruptEnter(InterruptKind::Timer));
        assert_eq!(timer.named_by("local_timer_entry"), None);
        let thermal = kernel("thermal_apic_exit", &["vector"]).unwrap();
        assert_eq!(thermal.meaning(), Meaning::InterruptExit(InterruptKind::Vector));
    }

    #[test]
    fn a_field_without_a_name_is_found_by_its_position() {
        let listed = kernel("IRQ", &[""]).unwrap();
        assert_eq!(listed.field(Role::Number), Some(0));
    }
}
