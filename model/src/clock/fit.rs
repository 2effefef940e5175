//! A straight line from nanoseconds to ticks. [`Conversion`](super::Conversion) is piecewise, through all snapshots.

use super::{Hertz, Nanos, Snapshot, Ticks};

/// A straight line through the snapshots of one clock: `tick = origin.tick + (ns - origin.ns) × rate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockFit {
    origin_tick: Ticks,
    origin_ns: Nanos,
    rate: Hertz,
    residual_ns: f64,
}

impl ClockFit {
    /// The line through the first and the last snapshot, and the largest distance of the others from it.
    ///
    /// `None` with fewer than two snapshots, or if either clock does not advance between them.
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
