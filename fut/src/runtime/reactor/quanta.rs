//! Detects that a user thread has run for its quantum. The reactor checks the workers twice per quantum: if one has
//! carried the same thread for a quantum, it requests that the thread leave at its next safe point.

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
    /// Its number of dispatches at the last check, and when that number was first seen.
    dispatches: u64,
    since: Instant,
}

impl<'a> Quanta<'a> {
    pub(super) fn new(quantum: Duration, worker_status: &'a [WorkerStatus]) -> Quanta<'a> {
        let now = Instant::now();
        let workers =
            worker_status.iter().map(|status| Worker { status, dispatches: 0, since: now }).collect();
        Quanta { quantum, next: now, workers }
    }

    /// Checks the workers if it is time to, and returns the time of the next check.
    pub(super) fn tick(&mut self, now: Instant) -> Instant {
        if now < self.next {
            return self.next;
        }
        for worker in &mut self.workers {
            let dispatches = worker.status.dispatches.load(Ordering::Relaxed);
            if dispatches != worker.dispatches {
                (worker.dispatches, worker.since) = (dispatches, now);
            } else if now - worker.since >= self.quantum {
                worker.status.preempt.store(true, Ordering::Relaxed);
            }
        }
        self.next = now + self.quantum / 2;
        self.next
    }
}
