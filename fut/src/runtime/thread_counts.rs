//! Counts the user threads of a runtime that have not ended, without a word to which all LWPs write.

use crate::model_check::atomic::{AtomicU64, Ordering};

/// Numbers of user threads created and ended, as counted by one worker, or by all threads that are not workers.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ThreadCounts {
    created: AtomicU64,
    ended: AtomicU64,
}

/// The counts to which an LWP adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountsOfLwp {
    counts: &'static ThreadCounts,
    is_only_writer: bool,
}

impl CountsOfLwp {
    /// The counts of a worker, which no other thread changes.
    pub(super) fn of_worker(counts: &'static ThreadCounts) -> CountsOfLwp {
        CountsOfLwp { counts, is_only_writer: true }
    }

    pub(super) fn of_others(counts: &'static ThreadCounts) -> CountsOfLwp {
        CountsOfLwp { counts, is_only_writer: false }
    }

    #[inline]
    pub(super) fn created(self) {
        self.add(&self.counts.created);
    }

    #[inline]
    pub(super) fn ended(self) {
        self.add(&self.counts.ended);
    }

    #[inline]
    fn add(self, count: &AtomicU64) {
        // Release: pairs with the Acquire in `all_have_ended`. It then also sees what the ended thread has created.
        if self.is_only_writer {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Release);
        } else {
            count.fetch_add(1, Ordering::Release);
        }
    }
}

/// Whether no user thread existed at some moment during this call.
///
/// The ends are read first. All counts grow, so between the two sums there were at least as many ends as the first sum, and
/// at most as many creations as the second.
pub(super) fn all_have_ended(counts: &[ThreadCounts]) -> bool {
    // Acquire: pairs with the Release in `add`.
    let ended: u64 = counts.iter().map(|counts| counts.ended.load(Ordering::Acquire)).sum();
    let created: u64 = counts.iter().map(|counts| counts.created.load(Ordering::Acquire)).sum();
    ended == created
}

#[cfg(all(test, loom))]
mod model {
    use loom::thread;

    use super::*;
    use crate::model_check::atomic::AtomicBool;

    /// A thread on the first LWP creates a second thread and ends. The second thread runs on the second LWP and ends,
    /// too. A concurrent observer finds that all have ended only if both have.
    #[test]
    fn all_have_ended_only_after_the_last() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let counts: &'static [ThreadCounts] =
                Box::leak(Box::new([ThreadCounts::default(), ThreadCounts::default()]));
            let (first, second) = (CountsOfLwp::of_worker(&counts[0]), CountsOfLwp::of_others(&counts[1]));
            let last_ends: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
            first.created();
            let one = thread::spawn(move || {
                first.created();
                let other = thread::spawn(move || {
                    last_ends.store(true, Ordering::Relaxed);
                    second.ended();
                });
                first.ended();
                other.join().unwrap();
            });
            for _ in 0..2 {
                assert!(!all_have_ended(counts) || last_ends.load(Ordering::Relaxed));
            }
            one.join().unwrap();
            assert!(all_have_ended(counts));
        });
    }
}
