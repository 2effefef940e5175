//! One instant, read on two clocks.

use super::{ClockDomain, Nanos, Ticks};

/// One instant read on two clocks: the TSC before and after a read of another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// TSC just before `ns` was read.
    pub before: Ticks,
    /// TSC just after.
    pub after: Ticks,
    /// The reading of the other clock.
    pub ns: Nanos,
}

impl Snapshot {
    /// The instant: the middle of the bracket.
    pub fn tick(&self) -> Ticks {
        Ticks(self.before.0 + (self.after.0.saturating_sub(self.before.0)) / 2)
    }
}

impl Snapshot {
    /// The duration of the read of the other clock, in ticks: the instant is uncertain by half of it.
    pub fn bracket(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }
}

/// A reading of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The clock.
    pub clock: ClockDomain,
    /// The reading, in the clock's own unit: nanoseconds, or ticks.
    pub value: u64,
}

/// One instant read on two clocks, neither of which need be the TSC: perf's `CLOCK_DATA` (its clock and the wall
/// clock), the offset of an LTTng clock to the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// One clock.
    pub left: Reading,
    /// The other.
    pub right: Reading,
    /// The uncertainty, in units of `left`: half the bracket. 0 if the file does not have it.
    pub within: u64,
}
