//! What an event means to a picture, by its name: the begin or the end of a slice, or somebody who wakes somebody.

use std::{fmt::Write, hash::BuildHasher};

use sigmund_model::{EventType, Level, Params, names};

use super::{locks::Fields, slices::Key};
use crate::timeline::SliceKind;

/// What an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It is only an event.
    Event,
    /// It makes an LWP runnable.
    WakesLwp,
    /// It makes a user thread ready.
    WakesThread,
    /// A slice of this kind begins.
    Begins(SliceKind),
    /// One ends.
    Ends(SliceKind),
    /// Somebody has taken a lock.
    Takes(Fields),
    /// Somebody gives one back.
    GivesBack(Fields),
}

/// The roles of all declared events, where the names of their slices are found, and where what pairs begin and end.
pub(super) struct Roles(Vec<(Role, Naming, Pairing)>);

/// Where the name of a slice is found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Naming {
    /// The text of this field, or else its number.
    Field(usize),
    /// An interrupt's number and its handler.
    Irq { irq: Option<usize>, name: Option<usize> },
    /// Always this.
    Constant(String),
}

/// What the begin and the end of a slice have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pairing {
    /// Slices of the kind nest as they come.
    Nested,
    /// The same number in this field: the address of a span's place, or of a function.
    Number(usize),
    /// The same system call in this field, by its name or its number.
    Call(usize),
    /// The same function in the text of this field, `FUNCTION at FILE:LINE`: in C, `PROF_IN` and `PROF_OUT` have the
    /// addresses of two places in it.
    Function(usize),
    /// The event's own name says it: `sys_enter_read` and `sys_exit_read`.
    Constant(Key),
}

impl Roles {
    /// Takes the declared events, and how many there are of each.
    pub(super) fn of<'e>(events: impl Iterator<Item = (&'e EventType, u64)> + Clone) -> Roles {
        // The waker records the first of the two, the second may be recorded on the CPU of who wakes up.
        let has_waking = events.clone().any(|(ty, events)| ty.name == "sched_waking" && events > 0);
        Roles(events.map(|(ty, _)| (role(ty, has_waking), naming(ty), pairing(ty))).collect())
    }

    /// The role of an event.
    pub(super) fn role(&self, kind: usize) -> Role {
        self.0[kind].0
    }

    /// Pairs the begin of a slice with its end; `None` at an end that fits whatever slice of its kind is open.
    pub(super) fn key(&self, kind: usize, params: &Params) -> Option<Key> {
        let param = |index: usize| params.get(index).map(|p| (p.number, p.text));
        match self.0[kind].2 {
            Pairing::Nested => Some(0),
            Pairing::Constant(key) => Some(key),
            Pairing::Number(index) => param(index)?.0,
            Pairing::Call(index) => match param(index)? {
                (_, Some(name)) => Some(hashed(name)),
                // The kernel no longer knows the number: rt_sigreturn, or a tracer has skipped the call.
                (Some(-1), None) => None,
                (number, None) => number,
            },
            Pairing::Function(index) => match param(index)? {
                (_, Some(text)) => {
                    Some(hashed(text.split_once(" at ").map_or(text, |(function, _)| function)))
                }
                // Nobody named the address.
                (_, None) => None,
            },
        }
    }

    /// Writes the name of the slice that an event begins.
    pub(super) fn name(&self, kind: usize, params: &Params, name: &mut String) {
        name.clear();
        let mut push = |index: usize| match params.get(index).map(|p| (p.number, p.text)) {
            Some((_, Some(text))) => name.push_str(text),
            Some((Some(number), None)) => drop(write!(name, "{number}")),
            Some((None, None)) | None => name.push('?'),
        };
        match &self.0[kind].1 {
            Naming::Field(index) => push(*index),
            Naming::Constant(constant) => name.push_str(constant),
            Naming::Irq { irq, name: handler } => {
                if let Some(number) = irq.and_then(|irq| params.get(irq)?.number) {
                    let _ = write!(name, "irq {number}");
                }
                if let Some(handler) = handler.and_then(|handler| params.get(handler)?.text) {
                    let _ = write!(name, "{}{handler}", if name.is_empty() { "" } else { " " });
                }
            }
        }
    }
}

fn role(ty: &EventType, has_waking: bool) -> Role {
    use SliceKind::{Function, Irq, Softirq, Span, Syscall};
    let name = ty.name.as_str();
    if ty.level == Level::User {
        return match name {
            "USER_THREAD_READY" => Role::WakesThread,
            "SPAN_BEGIN" => Role::Begins(Span),
            "SPAN_END" => Role::Ends(Span),
            "PROF_IN" | "FUNC_ENTER" => Role::Begins(Function),
            "PROF_OUT" | "FUNC_EXIT" => Role::Ends(Function),
            names::LOCK_ACQUIRE => Fields::of(ty).map_or(Role::Event, Role::Takes),
            names::LOCK_RELEASE => Fields::of(ty).map_or(Role::Event, Role::GivesBack),
            _ => Role::Event,
        };
    }
    match name {
        "sched_waking" => Role::WakesLwp,
        "sched_wakeup" if !has_waking => Role::WakesLwp,
        // Of an LWP that is new, there is no other.
        "sched_wakeup_new" => Role::WakesLwp,
        "irq_handler_entry" | names::IRQ => Role::Begins(Irq),
        "irq_handler_exit" | names::IRQ_EXIT => Role::Ends(Irq),
        // ftrace and perf; LTTng.
        "softirq_entry" | "irq_softirq_entry" => Role::Begins(Softirq),
        "softirq_exit" | "irq_softirq_exit" => Role::Ends(Softirq),
        _ if name == "sys_enter" || syscall_begin(name).is_some() => Role::Begins(Syscall),
        _ if name == "sys_exit" || syscall_end(name) => Role::Ends(Syscall),
        // The local interrupts of x86: local_timer_entry, reschedule_exit, …
        _ if ty.field("vector").is_some() && name.ends_with("_entry") => Role::Begins(Irq),
        _ if ty.field("vector").is_some() && name.ends_with("_exit") => Role::Ends(Irq),
        _ => Role::Event,
    }
}

/// `read` of `sys_enter_read` (ftrace, perf) and of `syscall_entry_read` (LTTng).
fn syscall_begin(name: &str) -> Option<&str> {
    ["sys_enter_", "syscall_entry_"].iter().find_map(|prefix| name.strip_prefix(prefix))
}

fn syscall_end(name: &str) -> bool {
    name.starts_with("sys_exit_") || name.starts_with("syscall_exit_")
}

fn pairing(ty: &EventType) -> Pairing {
    let name = ty.name.as_str();
    if ty.level == Level::User {
        return match name {
            "PROF_IN" | "PROF_OUT" => Pairing::Function(0),
            _ => Pairing::Number(0),
        };
    }
    let of_one_call = ["sys_exit_", "syscall_exit_"].iter().find_map(|prefix| name.strip_prefix(prefix));
    match syscall_begin(name).or(of_one_call) {
        Some(call) => Pairing::Constant(hashed(call)),
        None if matches!(name, "sys_enter" | "sys_exit") => Pairing::Call(ty.field("id").unwrap_or(0)),
        None => Pairing::Nested,
    }
}

fn hashed(text: &str) -> Key {
    foldhash::fast::FixedState::default().hash_one(text) as Key
}

fn naming(ty: &EventType) -> Naming {
    let name = ty.name.as_str();
    if let Some(call) = syscall_begin(name) {
        return Naming::Constant(call.into());
    }
    match name {
        "irq_handler_entry" => Naming::Irq { irq: ty.field("irq"), name: ty.field("name") },
        names::IRQ => Naming::Irq { irq: Some(0), name: None },
        _ if ty.field("vector").is_some() => Naming::Constant(name.trim_end_matches("_entry").into()),
        _ => Naming::Field(["id", "vec"].iter().find_map(|field| ty.field(field)).unwrap_or(0)),
    }
}
