//! Detects that a user thread has run for its quantum. The reactor checks the workers twice per quantum. If a worker
//! has carried the same thread for a quantum, the reactor requests that the thread leave at its next safe point. If the
//! thread has reached none at the next check, it may never leave. Then the threads that are queued behind it and may
//! run elsewhere go to the queue that all workers share. (The other workers may never look for work elsewhere, if their
//! own threads yield for ever.)

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use crate::runtime::lwp::WorkerStatus;

pub(super) struct Quanta<'a> {
    quantum: Duration,
    next: Instant,
    workers: Vec<Worker<'a>>,
}

struct Worker<'a> {
    status: &'a WorkerStatus,
    /// The worker's number of dispatches at the last check, and when that number was first seen.
    dispatches: u64,
    since: Instant,
    /// Whether the thread of that dispatch was asked to leave.
    is_asked: bool,
}

impl<'a> Quanta<'a> {
    pub(super) fn new(quantum: Duration, worker_status: &'a [WorkerStatus]) -> Quanta<'a> {
        let now = Instant::now();
        let workers =
            worker_status.iter().map(|status| Worker { status, dispatches: 0, since: now, is_asked: false });
        Quanta { quantum, next: now, workers: workers.collect() }
    }

    /// Checks the workers if it is time to, and returns the time of the next check. Calls `share` with the number of
    /// each worker whose thread was asked to leave at an earlier check and has not left.
    pub(super) fn tick(&mut self, now: Instant, mut share: impl FnMut(usize)) -> Instant {
        if now < self.next {
            return self.next;
        }
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let dispatches = worker.status.dispatches.load(Ordering::Relaxed);
            if dispatches != worker.dispatches {
                (worker.dispatches, worker.since, worker.is_asked) = (dispatches, now, false);
            } else if now - worker.since >= self.quantum {
                worker.status.preempt.store(true, Ordering::Relaxed);
                if std::mem::replace(&mut worker.is_asked, true) {
                    share(number);
                }
            }
        }
        self.next = now + self.quantum / 2;
        self.next
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // look     1   2   3   4   5     half a quantum apart
    // thread   A   A   A   A   B
    // asked            x   x
    // shared               x
    #[test]
    fn a_thread_is_asked_to_leave_after_a_quantum_and_its_queue_is_shared_at_the_next_look() {
        const QUANTUM: Duration = Duration::from_millis(10);
        let status = [WorkerStatus::default()];
        let mut quanta = Quanta::new(QUANTUM, &status);
        let start = Instant::now();
        let mut look = |number: u32| {
            let mut shared = Vec::new();
            let now = start + QUANTUM / 2 * number;
            assert_eq!(quanta.tick(now, |worker| shared.push(worker)), now + QUANTUM / 2);
            // The worker clears the request when it dispatches another thread.
            (status[0].preempt.swap(false, Ordering::Relaxed), shared)
        };
        status[0].dispatches.store(7, Ordering::Relaxed);
        assert_eq!(look(1), (false, vec![]));
        assert_eq!(look(2), (false, vec![]));
        assert_eq!(look(3), (true, vec![]));
        assert_eq!(look(4), (true, vec![0]));
        status[0].dispatches.store(8, Ordering::Relaxed);
        assert_eq!(look(5), (false, vec![]));
    }
}
