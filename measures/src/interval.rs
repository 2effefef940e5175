//! Intervals of time.

/// A half-open interval of ticks of the main clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// The first tick inside.
    pub from: i64,
    /// The first tick after it. Never less than `from`.
    pub to: i64,
}

impl Interval {
    /// All of time.
    pub const ALL: Interval = Interval { from: i64::MIN, to: i64::MAX };

    /// An interval; of length 0 if `to` is before `from`.
    pub fn new(from: i64, to: i64) -> Interval {
        Interval { from, to: to.max(from) }
    }

    /// Its length in ticks.
    pub fn ticks(self) -> i64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether a tick is inside.
    pub fn contains(self, tick: i64) -> bool {
        self.from <= tick && tick < self.to
    }

    /// The part that is also in `other`; `None` if they do not overlap. An interval of length 0 overlaps each interval
    /// that contains it.
    pub fn clipped(self, other: Interval) -> Option<Interval> {
        let (from, to) = (self.from.max(other.from), self.to.min(other.to));
        (from < to || (self.from == self.to && other.contains(self.from))).then_some(Interval { from, to })
    }

    /// How many ticks of it are also in `other`.
    pub fn overlap(self, other: Interval) -> i64 {
        self.to.min(other.to).saturating_sub(self.from.max(other.from)).max(0)
    }
}
