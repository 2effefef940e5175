//! A timeline with fewer changes: intervals too short to be seen are merged or left out; totals are preserved.
//!
//! [`Coarse`] is a sink that emits another timeline, which obeys all rules of a timeline. Time is divided into buckets
//! of the shortest visible length, starting at the clock's first tick.
//!
//! ```text
//!   exact   |A|B|A| B |A|B|C|A|B|A|BBBBBBBBBBBBBBBBBBBBBBBBBBBBBB|C|A|C|    B is long: its bounds are kept
//!   bucket  ^              ^              ^              ^              ^
//!   coarse  |AAA|BBBBB|C|AA|AA|BB|BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB|CC|A|   the totals of A, B and C are exact
//! ```
//!
//! | what | result |
//! |---|---|
//! | a state, or an occupant of a CPU or an LWP, of at least a bucket | the same, with its exact bounds |
//! | a shorter one | cut at the ends of buckets; within a bucket, all intervals of one state on one track become one interval of their total length, in the order of first occurrence. CPU, LWP and the object it waits for are kept if they are the same in all of them |
//! | a state without length | left out |
//! | a slice of at least a bucket | the same |
//! | a shorter slice | left out, with all slices nested in it |
//! | an event, a wakeup, a migration | on each track, the first in each bucket (of each declared event; of wakeups; of migrations); the others are left out |
//! | a hold of a lock | left out: holds of one lock would overlap |
//! | a counter | in each bucket its minimum, its maximum and its last value, at their instants |
//!
//! So the total of each state on each track is exact, overall and in each bucket, and a track has at most two more
//! changes per bucket than it has states. [`LeftOut`] counts what was left out. Tracks are merged independently: within
//! a bucket, an LWP may be shown as running while its CPU is shown with another LWP.
//!
//! With a length of 0 or 1 tick, all changes pass through unchanged.
//!
//! # Memory and speed
//!
//! Whether an interval is long is known one bucket after it began, so changes are buffered for one to two buckets. At
//! most the changes of three buckets are buffered; their number is bounded as described above. Open slices that may be
//! short are buffered with their names. If one track has more than 65536 of them, the innermost are left out, whether
//! they are long or not; they are counted.
//!
//! 10⁷ changes of 10 user threads, 20 ticks apart; CPU time without the 0.18 s of the generator; 4 MB resident memory:
//!
//! | length | changes left | time |
//! |---|---|---|
//! | 100 ticks | 9 560 462 | 0.64 s |
//! | 2500 | 4 658 840 | 0.45 s |
//! | 250 000 | 160 353 | 0.14 s |
//! | 10⁹ (all) | 73 | 0.12 s |
//!
//! AMD EPYC, TSC 2.6 GHz, 2 CPUs; least of 4 runs of
//! `cargo test --release -p sigmund-export --test it -- --ignored --nocapture coarse::speed`.

mod counter;
mod firsts;
mod lane;
mod pending_changes;
mod slices;

use std::io;

use sigmund_model::Ticks;

use crate::timeline::{Actors, Change, Sink, Track};
use counter::Counters;
use firsts::{FirstsOfBuckets, InstantKind};
use lane::Lanes;
use pending_changes::{PendingChange, PendingChanges};
use slices::Slices;

/// A sink that emits to another sink a timeline without intervals too short to be seen.
#[derive(Debug)]
pub struct Coarse<S> {
    sink: S,
    buckets: Buckets,
    lanes: Lanes,
    slices: Slices,
    counters: Counters,
    firsts: FirstsOfBuckets,
    pending_changes: PendingChanges,
    /// The end of the current bucket.
    next: u64,
    /// Number of the current change.
    number: u64,
    left_out: LeftOut,
}

/// Counts of what was merged or left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// States, and occupants of a CPU or an LWP, that were too short: merged within their bucket.
    pub short_states: u64,
    /// Slices that were too short.
    pub slices: u64,
    /// Slices that were nested too deeply to be buffered.
    pub too_deep: u64,
    /// Events.
    pub events: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Migrations.
    pub migrations: u64,
    /// Values of counters.
    pub counts: u64,
    /// Holds of locks; all are left out.
    pub holds: u64,
}

/// The division of time into buckets.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    first: u64,
    /// Length of a bucket in ticks; an interval of at least this length is long.
    len: u64,
}

impl Buckets {
    #[inline]
    fn of(self, tick: Ticks) -> u64 {
        tick.0.saturating_sub(self.first) / self.len
    }

    /// The end of the bucket of this tick.
    #[inline]
    fn end(self, tick: Ticks) -> u64 {
        (self.of(tick) + 1).saturating_mul(self.len).saturating_add(self.first)
    }

    #[inline]
    fn is_long(self, from: Ticks, to: Ticks) -> bool {
        to.0 - from.0 >= self.len
    }
}

impl<S: Sink> Coarse<S> {
    /// Emits to `sink` a timeline with buckets of `least` ticks.
    pub fn new(sink: S, actors: &Actors, least: Ticks) -> Coarse<S> {
        let buckets = Buckets { first: actors.clock.first.0, len: least.0.max(1) };
        Coarse {
            sink,
            buckets,
            lanes: Lanes::new(actors),
            slices: Slices::new(actors),
            counters: Counters::new(actors),
            firsts: FirstsOfBuckets::default(),
            pending_changes: PendingChanges::default(),
            next: buckets.end(actors.clock.first),
            number: 0,
            left_out: LeftOut::default(),
        }
    }

    /// What was left out so far.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The receiving sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Returns the receiving sink.
    pub fn into_inner(self) -> S {
        self.sink
    }

    fn receive(&mut self, tick: Ticks, change: &Change<'_>) {
        self.number += 1;
        let Coarse { buckets, pending_changes, left_out, number, .. } = self;
        if let Some((lane, value)) = lane::state(change) {
            let received = lane::OpenState { value, from: tick, number: *number };
            left_out.short_states += u64::from(self.lanes.change(lane, received, *buckets, pending_changes));
            return;
        }
        match *change {
            Change::Enter(track, slice) => {
                left_out.too_deep += u64::from(!self.slices.enter(track, tick, *number, slice));
            }
            Change::Leave(track, kind) => {
                left_out.slices +=
                    u64::from(!self.slices.leave(track, tick, *number, kind, *buckets, pending_changes));
            }
            Change::Count(counter, value) => self.counters.count(counter, tick, *number, value),
            Change::Event(event) => {
                let instant = InstantKind::Event(event.kind);
                if self.firsts.is_first(instant, event.track(), buckets.of(tick)) {
                    pending_changes.push(tick, *number, PendingChange::event(event));
                } else {
                    left_out.events += 1;
                }
            }
            Change::Wakeup { by, of } => {
                if self.firsts.is_first(InstantKind::Wakeup, Some(of), buckets.of(tick)) {
                    pending_changes.push(tick, *number, PendingChange::Plain(Change::Wakeup { by, of }));
                } else {
                    left_out.wakeups += 1;
                }
            }
            Change::Migration { of, from, to } => {
                if self.firsts.is_first(InstantKind::Migration, Some(of), buckets.of(tick)) {
                    pending_changes.push(
                        tick,
                        *number,
                        PendingChange::Plain(Change::Migration { of, from, to }),
                    );
                } else {
                    left_out.migrations += 1;
                }
            }
            Change::Locked { .. } => left_out.holds += 1,
            Change::Unlocked { .. } => {}
            // States are handled above.
            Change::CpuLwp(..)
            | Change::CpuThread(..)
            | Change::LwpThread(..)
            | Change::Lwp { .. }
            | Change::Thread { .. } => {}
        }
    }

    /// Begins a bucket. An interval that began more than a bucket ago is long, so all changes before the previous
    /// bucket are final and are emitted.
    #[cold]
    fn enter_bucket(&mut self, now: Ticks) -> io::Result<()> {
        self.lanes.settle(now, self.buckets, &mut self.pending_changes);
        self.slices.settle(now, self.buckets, &mut self.pending_changes);
        self.left_out.counts += self.counters.settle(&mut self.pending_changes);
        self.next = self.buckets.end(now);
        let final_before = self.next.saturating_sub(2 * self.buckets.len).max(self.buckets.first);
        self.pending_changes.emit_before(final_before, &mut self.sink)
    }
}

impl<S: Sink> Sink for Coarse<S> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        if self.buckets.len <= 1 {
            return self.sink.change(tick, change);
        }
        if tick.0 >= self.next {
            self.enter_bucket(tick)?;
        }
        self.receive(tick, change);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.lanes.finish(&mut self.pending_changes);
        self.left_out.counts += self.counters.settle(&mut self.pending_changes);
        self.pending_changes.emit_before(u64::MAX, &mut self.sink)?;
        self.sink.finish()
    }
}

/// Indices of tracks: CPUs, then LWPs, then user threads.
#[derive(Clone, Copy, Debug)]
struct TrackIndices {
    cpus: usize,
    lwps: usize,
}

impl TrackIndices {
    fn of(actors: &Actors) -> TrackIndices {
        TrackIndices { cpus: actors.cpus.len(), lwps: actors.lwps.len() }
    }

    #[inline]
    fn track(self, track: Track) -> usize {
        match track {
            Track::Cpu(cpu) => cpu.index(),
            Track::Lwp(lwp) => self.cpus + lwp.index(),
            Track::Thread(thread) => self.cpus + self.lwps + thread.index(),
        }
    }
}
