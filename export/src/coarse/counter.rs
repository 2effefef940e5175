//! Counters: the minimum, the maximum and the last value of each bucket.

use sigmund_model::Ticks;

use super::pending_changes::{PendingChange, PendingChanges};
use crate::timeline::{Actors, Change, Counter};

#[derive(Debug)]
pub(super) struct Counters {
    processes: usize,
    /// The values of the current bucket: counters of processes, then of CPUs.
    values: Vec<Option<BucketValues>>,
    /// Indices of counters with values in the current bucket.
    pending: Vec<u32>,
}

/// A value at an instant.
#[derive(Clone, Copy, Debug)]
struct CounterSample {
    value: u64,
    tick: Ticks,
    number: u64,
}

/// The values of a counter in the current bucket.
#[derive(Clone, Copy, Debug)]
struct BucketValues {
    counter: Counter,
    least: CounterSample,
    greatest: CounterSample,
    last: CounterSample,
    received: u64,
}

impl Counters {
    pub(super) fn new(actors: &Actors) -> Counters {
        let processes = actors.processes.len();
        Counters { processes, values: vec![None; processes + actors.cpus.len()], pending: Vec::new() }
    }

    /// Receives a value. The caller calls [`settle`](Self::settle) at the end of each bucket.
    pub(super) fn count(&mut self, counter: Counter, tick: Ticks, number: u64, value: u64) {
        let index = match counter {
            Counter::ReadyQueue(process) => process.index(),
            Counter::RunQueue(cpu) => self.processes + cpu.index(),
        };
        let sample = CounterSample { value, tick, number };
        match &mut self.values[index] {
            Some(values) => values.add(sample),
            none => {
                *none = Some(BucketValues {
                    counter,
                    least: sample,
                    greatest: sample,
                    last: sample,
                    received: 1,
                });
                self.pending.push(index as u32);
            }
        }
    }

    /// Ends the bucket. Returns the number of values left out.
    pub(super) fn settle(&mut self, pending_changes: &mut PendingChanges) -> u64 {
        let mut left_out = 0;
        for index in self.pending.drain(..) {
            let values = self.values[index as usize].take();
            left_out += values.map_or(0, |values| values.emit(pending_changes));
        }
        left_out
    }
}

impl BucketValues {
    fn add(&mut self, sample: CounterSample) {
        if sample.value < self.least.value {
            self.least = sample;
        }
        if sample.value > self.greatest.value {
            self.greatest = sample;
        }
        self.last = sample;
        self.received += 1;
    }

    fn emit(self, pending_changes: &mut PendingChanges) -> u64 {
        let BucketValues { counter, least, greatest, last, received } = self;
        let is_new =
            [true, greatest.number != least.number, ![least.number, greatest.number].contains(&last.number)];
        let mut emitted = 0;
        for (sample, is_new) in [least, greatest, last].into_iter().zip(is_new) {
            if is_new {
                pending_changes.push(
                    sample.tick,
                    sample.number,
                    PendingChange::Plain(Change::Count(counter, sample.value)),
                );
                emitted += 1;
            }
        }
        received - emitted
    }
}
