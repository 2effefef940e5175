//! The pieces of a walk.

use sigmund_model::WaitKind;

use crate::{Context, History, Interval, Word};

/// A user thread or an LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A user thread.
    Thread(u64),
    /// An LWP.
    Lwp(u32),
}

impl Actor {
    /// For people: `15(work/6)`, `LWP 812(cc1)`.
    pub fn label(self, history: &History) -> String {
        match self {
            Actor::Thread(thread) => history.names.thread_label(thread),
            Actor::Lwp(lwp) => format!("LWP {}", history.names.lwp_label(lwp)),
        }
    }

    /// Its own name.
    pub(crate) fn name(self, history: &History) -> Option<&str> {
        match self {
            Actor::Thread(thread) => history.names.threads.get(thread)?.name,
            Actor::Lwp(lwp) => history.names.lwps.get(lwp)?.name,
        }
    }
}

/// A part of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Never of length 0.
    pub interval: Interval,
    /// The user thread or LWP that spent the time.
    pub actor: Actor,
    /// The LWP that the actor was on, or is.
    pub lwp: Option<u32>,
    /// The CPU that it was on, or waited for.
    pub cpu: Option<u32>,
    /// What it did.
    pub what: What,
    /// The jump that led to this actor; `None` for the actor that the walk began with.
    pub link: Option<Link>,
}

/// What an actor did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// It was on a CPU.
    Running,
    /// It was on a CPU that handled an interrupt: its place in the history.
    Interrupt(u32),
    /// It, or its LWP, was runnable.
    WaitingForCpu,
    /// It was ready.
    WaitingForLwp,
    /// It waited until an interrupt woke it: a timer or a device.
    WaitingFor(Source),
    /// It waited for an object, and the waker is unknown; or it waited for an instant or a descriptor.
    BlockedOn {
        /// The kind of the object, if the runtime recorded it.
        kind: Option<WaitKind>,
        /// The object; 0 if the runtime did not record it.
        object: i64,
    },
    /// It or its LWP slept in a system call, and the waker is unknown. `None` if the call is unknown.
    InSystemCall(Option<Word>),
    /// It was on an LWP whose state is unknown, because there is no kernel trace.
    Mounted,
    /// Not known.
    Unknown,
}

impl What {
    /// Whether it waits for an instant or a descriptor. The runtime wakes it when it notices that this is ready, on any
    /// LWP and in any user thread or none.
    pub(super) fn is_for_the_kernel(self) -> bool {
        matches!(self, What::BlockedOn { kind: Some(WaitKind::Sleep | WaitKind::Io), .. })
    }

    /// When a sleep was to end, if that is known.
    pub(super) fn asked_end(self) -> Option<i64> {
        match self {
            What::BlockedOn { kind: Some(WaitKind::Sleep), object } if object > 0 => Some(object),
            _ => None,
        }
    }

    /// For people, without the culprit.
    pub fn name(self) -> &'static str {
        match self {
            What::Running => "running",
            What::Interrupt(_) => "interrupt",
            What::WaitingForCpu => "waiting for a CPU",
            What::WaitingForLwp => "waiting for an LWP",
            What::WaitingFor(_) => "waiting for an interrupt",
            What::BlockedOn { .. } => "blocked",
            What::InSystemCall(_) => "in system call",
            What::Mounted => "mounted",
            What::Unknown => "unknown",
        }
    }
}

/// Which interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Its place in the history.
    Interrupt(u32),
    /// A context, because the entry of the interrupt was not traced.
    Context(Context),
}

/// A jump of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// The piece's actor ended a wait of another actor.
    Woke {
        /// The actor that waited.
        woken: Actor,
        /// When the wait began.
        since: i64,
        /// What it waited for: [`What::BlockedOn`] or [`What::InSystemCall`].
        wait: What,
    },
    /// The piece's actor created this actor.
    Created(Actor),
}
