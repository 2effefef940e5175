//! One instant, read on two clocks.

use super::{ClockDomain, Nanos, Ticks};

/// One instant read on two clocks: the TSC before and after a read of another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// TSC just before `ns` was read.
    pub before: Ticks,
    /// TSC just after.
    pub after: Ticks,
    /// What the other clock said in between.
    pub ns: Nanos,
}

impl Snapshot {
    /// The instant, as near as the bracket allows.
    pub fn tick(&self) -> Ticks {
        Ticks(self.before.0 + (self.after.0.saturating_sub(self.before.0)) / 2)
    }
}

impl Snapshot {
    /// How long the read of the other clock took, in ticks: the instant is not known better than half of it.
    pub fn bracket(&self) -> u64 {
        self.after.0.saturating_sub(self.before.0)
    }
}

/// What a clock said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Which clock.
    pub clock: ClockDomain,
    /// In its own unit: nanoseconds, or ticks.
    pub value: u64,
}

/// One instant read on two clocks of which neither need be the TSC: perf's `CLOCK_DATA` (its clock and the wall
/// clock), the offset to the epoch of an LTTng clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// One clock.
    pub left: Reading,
    /// The other.
    pub right: Reading,
    /// How far the two may be apart, in units of `left`: half the bracket. What a file does not say is 0.
    pub within: u64,
}
