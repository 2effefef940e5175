//! Models. loom runs them in every interleaving, and with every value that an atomic load may return.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sigmund-fut --release --lib loom`
//!
//! Each of these changes was tried alone. It makes the named model fail.
//!
//! | changed | fails |
//! |---|---|
//! | the spin lock is released with Relaxed | `spin_lock_excludes` |
//! | an answer is stored, or read, with Relaxed | `mutex_excludes_three` |
//! | the mutex is unlocked with Relaxed | `mutex_excludes_three` |
//! | a waiter queues without checking again whether the mutex is free | `mutex_excludes_three` |
//! | WAKING stays set when an overtaken waiter queues again | `mutex_excludes_three` |
//! | a hand-over of the mutex clears LOCKED | `mutex_excludes_three` |
//! | a waiter that times out ignores an answer that arrived just before | `mutex_passes_a_wakeup_on_…` |
//! | a woken waiter gives up, and WAKING stays set | `mutex_passes_a_wakeup_on_…` |
//! | a woken waiter gives up without the lock of the queue | `mutex_passes_a_wakeup_on_…` |
//! | a writer that times out wakes no waiting reader | `rwlock_lets_readers_in_…` |
//! | a reader unlocks with Relaxed, or wakes no waiter although it is the last | `rwlock_excludes_writers_…` |
//! | a notified waiter returns that it timed out | `condvar_does_not_spend_…` |
//! | a waiter that times out keeps the permits that it got so far | `semaphore_that_times_out_…` |
//! | a waiter of a selection enters although one of another selection waits | `select_meets_select` |
//! | a waiter is claimed although its selection is not open | `select_neither_loses_…` |
//! | the flag of a future is set after the unpark | `block_on_loses_no_wake` |
//! | permits are released with Relaxed | `semaphore_gives_each_permit_once` |
//! | a notification leaves a permit although a thread was notified | `notify_waiters_neither_takes_…` |
//! | a notification of all takes the permit | `notify_waiters_neither_takes_…` |
//! | the last receiver of a watch wakes no sender | `watch_wakes_the_sender_…` |
//! | a waiter that is left behind stays in the queue of a oneshot, watch, broadcast or selection | `…_left_behind` |
//! | a child of a cancelled token is not cancelled | `cancellation_reaches_a_child_that_is_just_made` |
//! | a token that leaves the tree does not move its children | `cancellation_passes_two_…`, `…_leaves_the_tree` |
//! | it moves them to a token that is cancelled | `cancellation_reaches_a_child_whose_parent_…` |

#[cfg(test)]
mod cancellation;
#[cfg(test)]
mod left_behind;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod messages;
pub(super) mod runtime;
#[cfg(test)]
mod select;
#[cfg(test)]
mod waits;

#[cfg(test)]
use std::time::Instant;

/// A deadline that has already passed. The waiter queues nevertheless, and gives up at its first check. loom places
/// that check before, between and after all steps of other threads. This covers every race between a deadline and a
/// hand-over.
#[cfg(test)]
fn passed() -> Instant {
    Instant::now()
}

/// Checks all interleavings with up to `preemptions` preemptions; `None`: all interleavings.
#[cfg(test)]
fn check(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions.or(model.preemption_bound);
    model.check(move || {
        runtime::forget_all();
        body();
    });
}
