//! The role of an event in a timeline, by its name: the begin or the end of a slice, a wakeup, a lock's acquisition or release.

use std::{fmt::Write, hash::BuildHasher};

use sigmund_model::{EventType, Level, Params, names};

use super::{open_holds::LockFields, open_slices::Key};
use crate::timeline::SliceKind;

/// The role of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventRole {
    /// None.
    Event,
    /// It makes an LWP runnable.
    WakesLwp,
    /// It makes a user thread ready.
    WakesThread,
    /// A slice of this kind begins.
    Begins(SliceKind),
    /// A slice of this kind ends.
    Ends(SliceKind),
    /// A lock is acquired.
    Takes(LockFields),
    /// A lock is released.
    GivesBack(LockFields),
}

/// The roles of all declared events, and which of their fields name their slices and pair begin and end.
pub(super) struct EventRoles(Vec<(EventRole, SliceNaming, SlicePairing)>);

/// The source of a slice's name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SliceNaming {
    /// The text of this field, or else its number.
    Field(usize),
    /// An interrupt's number and its handler.
    Irq { irq: Option<usize>, name: Option<usize> },
    /// A constant.
    Constant(String),
}

/// How the end of a slice is matched with its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlicePairing {
    /// The innermost slice of the kind ends.
    Nested,
    /// The same number in this field: the address of a span's call site, or of a function.
    Number(usize),
    /// The same system call in this field, by its name or its number.
    Call(usize),
    /// The same function in the text of this field, `FUNCTION at FILE:LINE`: in C, `PROF_IN` and `PROF_OUT` have the
    /// addresses of two places in it.
    Function(usize),
    /// The same system call in the event's name: `sys_enter_read` and `sys_exit_read`.
    Constant(Key),
}

impl EventRoles {
    /// From the declared events, and the number of each.
    pub(super) fn of<'e>(events: impl Iterator<Item = (&'e EventType, u64)> + Clone) -> EventRoles {
        // The waker records sched_waking; sched_wakeup may be recorded on the CPU of the woken LWP.
        let has_waking = events.clone().any(|(ty, events)| ty.name == "sched_waking" && events > 0);
        EventRoles(events.map(|(ty, _)| (role(ty, has_waking), naming(ty), pairing(ty))).collect())
    }

    /// The role of an event.
    pub(super) fn role(&self, kind: usize) -> EventRole {
        self.0[kind].0
    }

    /// Matches the end of a slice with its begin; `None` of an end that matches any open slice of its kind.
    pub(super) fn key(&self, kind: usize, params: &Params) -> Option<Key> {
        let param = |index: usize| params.get(index).map(|p| (p.number, p.text));
        match self.0[kind].2 {
            SlicePairing::Nested => Some(0),
            SlicePairing::Constant(key) => Some(key),
            SlicePairing::Number(index) => param(index)?.0,
            SlicePairing::Call(index) => match param(index)? {
                (_, Some(name)) => Some(hashed(name)),
                // The kernel no longer has the number: rt_sigreturn, or a tracer has skipped the call.
                (Some(-1), None) => None,
                (number, None) => number,
            },
            SlicePairing::Function(index) => match param(index)? {
                (_, Some(text)) => {
                    Some(hashed(text.split_once(" at ").map_or(text, |(function, _)| function)))
                }
                // The address has no name.
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
            SliceNaming::Field(index) => push(*index),
            SliceNaming::Constant(constant) => name.push_str(constant),
            SliceNaming::Irq { irq, name: handler } => {
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

fn role(ty: &EventType, has_waking: bool) -> EventRole {
    use SliceKind::{Function, Irq, Softirq, Span, Syscall};
    let name = ty.name.as_str();
    if ty.level == Level::User {
        return match name {
            "USER_THREAD_READY" => EventRole::WakesThread,
            "SPAN_BEGIN" => EventRole::Begins(Span),
            "SPAN_END" => EventRole::Ends(Span),
            "PROF_IN" | "FUNC_ENTER" => EventRole::Begins(Function),
            "PROF_OUT" | "FUNC_EXIT" => EventRole::Ends(Function),
            names::LOCK_ACQUIRE => LockFields::of(ty).map_or(EventRole::Event, EventRole::Takes),
            names::LOCK_RELEASE => LockFields::of(ty).map_or(EventRole::Event, EventRole::GivesBack),
            _ => EventRole::Event,
        };
    }
    match name {
        "sched_waking" => EventRole::WakesLwp,
        "sched_wakeup" if !has_waking => EventRole::WakesLwp,
        // A new LWP has no sched_waking.
        "sched_wakeup_new" => EventRole::WakesLwp,
        "irq_handler_entry" | names::IRQ => EventRole::Begins(Irq),
        "irq_handler_exit" | names::IRQ_EXIT => EventRole::Ends(Irq),
        // ftrace and perf; LTTng.
        "softirq_entry" | "irq_softirq_entry" => EventRole::Begins(Softirq),
        "softirq_exit" | "irq_softirq_exit" => EventRole::Ends(Softirq),
        _ if name == "sys_enter" || syscall_begin(name).is_some() => EventRole::Begins(Syscall),
        _ if name == "sys_exit" || syscall_end(name) => EventRole::Ends(Syscall),
        // The local interrupts of x86: local_timer_entry, reschedule_exit, …
        _ if ty.field("vector").is_some() && name.ends_with("_entry") => EventRole::Begins(Irq),
        _ if ty.field("vector").is_some() && name.ends_with("_exit") => EventRole::Ends(Irq),
        _ => EventRole::Event,
    }
}

/// `read` of `sys_enter_read` (ftrace, perf) and of `syscall_entry_read` (LTTng).
fn syscall_begin(name: &str) -> Option<&str> {
    ["sys_enter_", "syscall_entry_"].iter().find_map(|prefix| name.strip_prefix(prefix))
}

fn syscall_end(name: &str) -> bool {
    name.starts_with("sys_exit_") || name.starts_with("syscall_exit_")
}

fn pairing(ty: &EventType) -> SlicePairing {
    let name = ty.name.as_str();
    if ty.level == Level::User {
        return match name {
            "PROF_IN" | "PROF_OUT" => SlicePairing::Function(0),
            _ => SlicePairing::Number(0),
        };
    }
    let of_one_call = ["sys_exit_", "syscall_exit_"].iter().find_map(|prefix| name.strip_prefix(prefix));
    match syscall_begin(name).or(of_one_call) {
        Some(call) => SlicePairing::Constant(hashed(call)),
        None if matches!(name, "sys_enter" | "sys_exit") => SlicePairing::Call(ty.field("id").unwrap_or(0)),
        None => SlicePairing::Nested,
    }
}

fn hashed(text: &str) -> Key {
    foldhash::fast::FixedState::default().hash_one(text) as Key
}

fn naming(ty: &EventType) -> SliceNaming {
    let name = ty.name.as_str();
    if let Some(call) = syscall_begin(name) {
        return SliceNaming::Constant(call.into());
    }
    match name {
        "irq_handler_entry" => SliceNaming::Irq { irq: ty.field("irq"), name: ty.field("name") },
        names::IRQ => SliceNaming::Irq { irq: Some(0), name: None },
        _ if ty.field("vector").is_some() => SliceNaming::Constant(name.trim_end_matches("_entry").into()),
        _ => SliceNaming::Field(["id", "vec"].iter().find_map(|field| ty.field(field)).unwrap_or(0)),
    }
}
