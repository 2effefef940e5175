//! Ticks, nanoseconds, and the rate between them.

/// A value of the recording's main clock, which is the time-stamp counter if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// A value, or a length, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// Ticks per second; always finite and positive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hertz(f64);

impl Hertz {
    /// A rate, or `None` when `per_second` is not a finite positive number.
    pub fn new(per_second: f64) -> Option<Hertz> {
        (per_second.is_finite() && per_second > 0.0).then_some(Hertz(per_second))
    }

    /// Ticks per second.
    pub fn per_second(self) -> f64 {
        self.0
    }

    /// Converts a length in ticks to nanoseconds, rounded down.
    pub fn to_nanos(self, length: Ticks) -> Nanos {
        Nanos((length.0 as f64 * 1e9 / self.0) as u64)
    }

    /// Converts a length in nanoseconds to ticks, rounded to the nearest.
    pub fn to_ticks(self, length: Nanos) -> Ticks {
        Ticks((length.0 as f64 * self.0 / 1e9).round() as u64)
    }
}
