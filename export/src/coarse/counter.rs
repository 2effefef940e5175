//! Counters: the minimum, the maximum and the last value of each bucket.

use sigmund_model::Ticks;

use super::pending_changes::{PendingChange, PendingChanges};
use crate::timeline::{Actors, Change, Counter};

#[derive(Debug)]
pub(super) struct Counters {
    processes: usize,
    /// The values of the current bucket: counters of processes, then of CPUs.
    points: Vec<Option<Points>>,
    /// Indices of counters with values in the current bucket.
    pending: Vec<u32>,
}

/// A value at an instant.
#[derive(Clone, Copy, Debug)]
struct Point {
    value: u64,
    tick: Ticks,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
struct Points {
    counter: Counter,
    least: Point,
    greatest: Point,
    last: Point,
    received: u64,
}

impl Counters {
    pub(super) fn new(actors: &Actors) -> Counters {
        let processes = actors.processes.len();
        Counters { processes, points: vec![None; processes + actors.cpus.len()], pending: Vec::new() }
    }

    /// Receives a value. The caller calls [`settle`](Self::settle) at the end of each bucket.
    pub(super) fn count(&mut self, counter: Counter, tick: Ticks, number: u64, value: u64) {
        let index = match counter {
            Counter::ReadyQueue(process) => process.index(),
            Counter::RunQueue(cpu) => self.processes + cpu.index(),
        };
        let point = Point { value, tick, number };
        match &mut self.points[index] {
            Some(points) => points.add(point),
            none => {
                *none = Some(Points { counter, least: point, greatest: point, last: point, received: 1 });
                self.pending.push(index as u32);
            }
        }
    }

    /// Ends the bucket; returns the number of values that are left out.
    pub(super) fn settle(&mut self, pending_changes: &mut PendingChanges) -> u64 {
        let mut left_out = 0;
        for index in self.pending.drain(..) {
            let points = self.points[index as usize].take();
            left_out += points.map_or(0, |points| points.emit(pending_changes));
        }
        left_out
    }
}

impl Points {
    fn add(&mut self, point: Point) {
        if point.value < self.least.value {
            self.least = point;
        }
        if point.value > self.greatest.value {
            self.greatest = point;
        }
        self.last = point;
        self.received += 1;
    }

    fn emit(self, pending_changes: &mut PendingChanges) -> u64 {
        let Points { counter, least, greatest, last, received } = self;
        let is_new =
            [true, greatest.number != least.number, ![least.number, greatest.number].contains(&last.number)];
        let mut emitted = 0;
        for (point, is_new) in [least, greatest, last].into_iter().zip(is_new) {
            if is_new {
                pending_changes.push(
                    point.tick,
                    point.number,
                    PendingChange::Plain(Change::Count(counter, point.value)),
                );
                emitted += 1;
            }
        }
        received - emitted
    }
}
