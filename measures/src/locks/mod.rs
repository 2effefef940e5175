//! `--locks`: how often each lock was requested, how long it took to acquire, and whether its holder ran meanwhile.

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
    subject: crate::measure::Subject::Optional("LOCK"),
    lists_cases: false,
    is_of_one_level: false,
    definition: include_str!("../definitions/locks.md"),
    needs: Needs {
        locks: true,
        syscalls: true,
        only_asleep: true,
        only_waited: true,
        wakeups: true,
        ..Needs::STATES
    },
    computed: rows::start,
};

fn columns(history: &History, request: &Request) -> Vec<Column> {
    let mut columns = match request.by {
        Some(by) => Group::columns(by, request.level(history)),
        None => Vec::new(),
    };
    columns.extend([
        Column::count("process", "The process of the lock; NULL if it is not known."),
        Column::object("object", "The address of the lock."),
        Column::text(
            "kind",
            "The kind of request: mutex, rwlock-read, rwlock-write or futex; kernel-mutex and so on.",
        ),
        Column::text(
            "call_site",
            "The innermost span or function that contains the requests; for a kernel lock, the system call.",
        ),
        Column::count("requests", "Requests."),
        Column::count("contended", "Requests that had to wait."),
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
            "The part of it without a known holder: the lock was free, or its holder is unknown.",
        ),
        Column::length(
            "lock_convoy_tick",
            "The convoy of the whole lock: of all kinds, call sites and groups.",
        ),
        Column::text("holder_state", "The state of the holder with the largest share of lock_convoy_tick."),
        Column::length("holder_state_tick", "The time in that state."),
        Column::text(
            "culprit",
            "The main reason: who had the CPU or the LWPs, the system call, or what the holder waited for.",
        ),
        Column::length("culprit_tick", "The part of holder_state_tick due to the culprit."),
        Column::text(
            "waker",
            "For futexes and locks of the kernel, who ended the largest share of the waits: a user thread, \
             an LWP, an interrupt; NULL if it is not known.",
        ),
        Column::length("waker_tick", "The sum of the waits that the waker ended."),
    ]);
    columns
}
