//! Models: loom runs them in every interleaving, and with every value that an atomic may give.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p fut --release --lib loom`
//!
//! That they can fail was tried: each of these changes, made alone, fails the model named.
//!
//! | changed | fails |
//! |---|---|
//! | the spin lock is released with Relaxed | `spin_lock_excludes` |
//! | an answer is stored, or read, with Relaxed | `mutex_excludes_three` |
//! | the mutex is unlocked with Relaxed | `mutex_excludes_three` |
//! | a waiter queues without looking once more whether the mutex is free | `mutex_excludes_three` |
//! | WAKING stays set when an overtaken waiter queues again | `mutex_excludes_three` |
//! | who hands the mutex over clears LOCKED | `mutex_excludes_three` |
//! | who times out takes no notice of an answer that came just before | `mutex_passes_a_wakeup_on_…` |
//! | a woken waiter gives up, and WAKING stays set | `mutex_passes_a_wakeup_on_…` |
//! | a woken waiter gives up without the lock of the queue | `mutex_passes_a_wakeup_on_…` |
//! | a writer that times out lets nobody in | `rwlock_lets_readers_in_…` |
//! | a reader leaves with Relaxed, or wakes nobody though it is the last | `rwlock_excludes_writers_…` |
//! | a notified waiter says that it timed out | `condvar_does_not_spend_…` |
//! | who times out keeps the permits it was given so far | `semaphore_that_times_out_…` |
//! | permits are given back with Relaxed | `semaphore_gives_each_permit_once` |

#[cfg(test)]
mod locks;
pub(super) mod runtime;
#[cfg(test)]
mod waits;

#[cfg(test)]
use std::time::Instant;

/// A deadline that has passed. The waiter queues all the same, and gives up when it first looks, which loom places
/// before, between and after all that others do: so this is every race between a deadline and a hand-over.
#[cfg(test)]
fn passed() -> Instant {
    Instant::now()
}

/// All interleavings with up to `preemptions` switches that a thread did not ask for; `None`: all there are.
#[cfg(test)]
fn check(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions.or(model.preemption_bound);
    model.check(move || {
        runtime::forget_all();
        body();
    });
}
