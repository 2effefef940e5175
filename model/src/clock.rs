//! Ticks, nanoseconds, and the way from one clock to another.

/// A value of the recording's main clock: the time-stamp counter, where there is one.
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

    /// A length in ticks as nanoseconds, rounded down.
    pub fn to_nanos(self, length: Ticks) -> Nanos {
        Nanos((length.0 as f64 * 1e9 / self.0) as u64)
    }

    /// A length in nanoseconds as ticks, rounded to the nearest.
    pub fn to_ticks(self, length: Nanos) -> Ticks {
        Ticks((length.0 as f64 * self.0 / 1e9).round() as u64)
    }
}

/// A clock that stamps events, or that a snapshot was taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClockDomain {
    /// The time-stamp counter (`rdtsc`; ftrace's `x86-tsc`).
    Tsc,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    MonotonicRaw,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    Monotonic,
    /// `CLOCK_BOOTTIME`, nanoseconds.
    Boottime,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    Realtime,
    /// ftrace's `local` and perf's default clock, nanoseconds.
    Local,
    /// Ticks of an unknown clock, as a listing gives them.
    Ticks,
}

impl ClockDomain {
    /// The name used in run directories and in the table `clocks`.
    pub fn name(self) -> &'static str {
        match self {
            ClockDomain::Tsc => "tsc",
            ClockDomain::MonotonicRaw => "monotonic_raw",
            ClockDomain::Monotonic => "monotonic",
            ClockDomain::Boottime => "boottime",
            ClockDomain::Realtime => "realtime",
            ClockDomain::Local => "local",
            ClockDomain::Ticks => "ticks",
        }
    }

    /// The clock of this name, as [`name`](Self::name) or as ftrace's `trace_clock` writes it.
    pub fn from_name(name: &str) -> Option<ClockDomain> {
        Some(match name {
            "tsc" | "x86-tsc" => ClockDomain::Tsc,
            "monotonic_raw" | "mono_raw" => ClockDomain::MonotonicRaw,
            "monotonic" | "mono" => ClockDomain::Monotonic,
            "boottime" | "boot" => ClockDomain::Boottime,
            "realtime" => ClockDomain::Realtime,
            "local" | "global" | "perf" => ClockDomain::Local,
            "ticks" => ClockDomain::Ticks,
            _ => return None,
        })
    }
}

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

/// A straight line through the snapshots of one clock: `tick = origin.tick + (ns - origin.ns) × rate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockFit {
    origin_tick: Ticks,
    origin_ns: Nanos,
    rate: Hertz,
    residual_ns: f64,
}

impl ClockFit {
    /// The line through the first and the last snapshot, and how far the others lie from it.
    ///
    /// `None` with fewer than two snapshots, or when they do not advance on both clocks.
    pub fn through(snapshots: &[Snapshot]) -> Option<ClockFit> {
        let (first, last) = (snapshots.first()?, snapshots.last()?);
        let ticks = last.tick().0.checked_sub(first.tick().0).filter(|t| *t > 0)?;
        let ns = last.ns.0.checked_sub(first.ns.0).filter(|n| *n > 0)?;
        let rate = Hertz::new(ticks as f64 * 1e9 / ns as f64)?;
        let mut fit = ClockFit { origin_tick: first.tick(), origin_ns: first.ns, rate, residual_ns: 0.0 };
        for snapshot in snapshots {
            let off = fit.to_tick(snapshot.ns).0.abs_diff(snapshot.tick().0);
            fit.residual_ns = fit.residual_ns.max(off as f64 * 1e9 / rate.per_second());
        }
        Some(fit)
    }

    /// Ticks per second of the other clock.
    pub fn rate(&self) -> Hertz {
        self.rate
    }

    /// The largest distance of a snapshot from the line, in nanoseconds.
    pub fn residual_ns(&self) -> f64 {
        self.residual_ns
    }

    /// An instant of the other clock, as a tick.
    pub fn to_tick(&self, ns: Nanos) -> Ticks {
        if ns >= self.origin_ns {
            Ticks(self.origin_tick.0.saturating_add(self.rate.to_ticks(Nanos(ns.0 - self.origin_ns.0)).0))
        } else {
            Ticks(self.origin_tick.0.saturating_sub(self.rate.to_ticks(Nanos(self.origin_ns.0 - ns.0)).0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u64, ns: u64) -> Snapshot {
        Snapshot { before: Ticks(tick - 10), after: Ticks(tick + 10), ns: Nanos(ns) }
    }

    #[test]
    fn a_line_through_two_snapshots_gives_the_rate() {
        let fit = ClockFit::through(&[at(1_000, 500), at(2_601_000, 1_000_500)]).unwrap();
        assert!((fit.rate().per_second() - 2.6e9).abs() < 1.0);
        assert_eq!(fit.to_tick(Nanos(500_500)), Ticks(1_301_000));
        assert_eq!(fit.to_tick(Nanos(400)), Ticks(740));
    }

    #[test]
    fn the_residual_is_the_distance_of_the_worst_snapshot() {
        let fit = ClockFit::through(&[at(1_000, 0), at(2_000, 510), at(3_000, 1_000)]).unwrap();
        assert!((fit.residual_ns() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn clocks_that_stand_still_fit_nothing() {
        assert_eq!(ClockFit::through(&[at(1_000, 5)]), None);
        assert_eq!(ClockFit::through(&[at(1_000, 5), at(1_000, 6)]), None);
        assert_eq!(ClockFit::through(&[at(1_000, 5), at(2_000, 5)]), None);
    }
}
