//! `--locks`: how often each lock was asked for, how long that took, and whether its holder ran meanwhile.

mod convoy;
mod holders;
mod holding;
mod lock;
mod rows;
mod wakers;

use crate::{Column, Group, History, Measure, Needs, Request};

pub(crate) use lock::{Lock, Selection, locks};

/// Requests, waits and holds of each lock and call site, and convoys.
pub(crate) const LOCKS: Measure = Measure {
    name: "locks",
    question: "Which locks do my threads wait for, and did their holders run meanwhile?",
    heading: crate::measure::headings::WAY,
    subject: crate::measure::Subject::None,
    lists_cases: false,
    definition: include_str!("../definitions/locks.md"),
    needs: Needs { locks: true, syscalls: true, only_asleep: true, wakeups: true, ..Needs::STATES },
    computed: crate::sliced::Computed::SlicedIf(is_sliced, rows::start),
};

/// Whether a request that began before a slice is selected is not known there, if that depends on its CPU.
fn is_sliced(request: &Request) -> bool {
    request.cpus.is_none()
}

fn columns(history: &History, request: &Request) -> Vec<Column> {
    let mut columns = match request.by {
        Some(by) => Group::columns(by, request.level(history)),
        None => Vec::new(),
    };
    columns.extend([
        Column::count("process", "The process of the lock; NULL if it is not known."),
        Column::object("object", "The address of the lock."),
        Column::text("kind", "What it was asked for: mutex, rwlock-read, rwlock-write or futex; kernel-mutex and so on."),
        Column::text("call_site", "The innermost span or function that the requests were made in; of a lock of the kernel the system call."),
        Column::count("requests", "Requests."),
        Column::count("contended", "Those that had to wait."),
        Column::length("wait_tick", "The sum of all waits."),
        Column::length("longest_wait_tick", "The longest wait."),
        Column::count("holds", "Requests whose hold was recorded."),
        Column::length("hold_tick", "The sum of these holds; NULL if there are none."),
        Column::length("longest_hold_tick", "The longest of them."),
        Column::count(
            "holders",
            "Different threads that are known to have acquired it; NULL if there are none.",
        ),
        Column::length("waited_tick", "Time in which at least one waited."),
        Column::length("holder_active_tick", "The part of it in which a holder was active."),
        Column::length("convoy_tick", "The part of it in which the holder was known not to be active."),
        Column::length("holder_unknown_tick", "The part of it in which it is not known what the holder did."),
        Column::length(
            "no_holder_tick",
            "The part of it without a known holder: the lock was free, or nobody knows.",
        ),
        Column::length(
            "lock_convoy_tick",
            "The convoy of the whole lock: of all kinds, call sites and groups.",
        ),
        Column::text("holder_state", "What the holder did for most of that."),
        Column::length("holder_state_tick", "For how long."),
        Column::text(
            "culprit",
            "Why, for most of that: who had the CPU or the LWPs, the system call it slept in, or what it waited for.",
        ),
        Column::length("culprit_tick", "For how long."),
        Column::text(
            "waker",
            "Of futexes and locks of the kernel who ended most of the waits: a user thread, an LWP, an interrupt; NULL if it is not known.",
        ),
        Column::length("waker_tick", "How much of the waits that was."),
    ]);
    columns
}
