//! Round lengths, for the bounds of buckets and the marks of axes. They are round in the displayed unit.

use sigmund_model::Hertz;

/// The unit in which lengths are shown: nanoseconds, or ticks if the rate of the clock is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Unit {
    /// Ticks per second.
    rate: Option<Hertz>,
}

impl Unit {
    pub(crate) fn new(tick_rate: Option<Hertz>) -> Unit {
        Unit { rate: tick_rate }
    }

    /// How many of this unit are a second; `None` for ticks.
    pub(crate) fn per_second(self) -> Option<Hertz> {
        self.rate.and(Hertz::new(1e9))
    }

    /// A number of this unit in ticks.
    pub(crate) fn ticks(self, count: i64) -> f64 {
        count as f64 * self.ticks_of_one()
    }

    /// A number of ticks in this unit.
    pub(crate) fn of_ticks(self, ticks: i64) -> f64 {
        ticks as f64 / self.ticks_of_one()
    }

    /// The smallest number of whole ticks that is at least `count` units long.
    pub(crate) fn first_tick(self, count: i64) -> i64 {
        if self.rate.is_none() {
            return count;
        }
        // Three roundings may have increased the product by less than this.
        (self.ticks(count) * (1.0 - f64::EPSILON)).ceil() as i64
    }

    fn ticks_of_one(self) -> f64 {
        self.rate.map_or(1.0, |rate| rate.per_second() / 1e9)
    }
}

/// 1, 10, 100 ... up to 10^18.
pub(crate) fn powers_of_ten() -> impl Iterator<Item = i64> {
    (0..19).map(|power| 10_i64.pow(power))
}

/// 1, 2, 5, 10, 20, 50 ... up to 5 * 10^18.
pub(crate) fn round_lengths() -> impl Iterator<Item = i64> {
    powers_of_ten().flat_map(|power| [1, 2, 5].map(|step| power * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_lengths_are_at_the_first_tick_that_is_not_before_them() {
        let ticks = |hz: f64, ns: i64| Unit::new(Hertz::new(hz)).first_tick(ns);
        for ns in round_lengths() {
            assert_eq!(Unit::new(None).first_tick(ns), ns);
        }
        for ns in round_lengths().take_while(|ns| *ns < 1_000_000_000_000_000) {
            assert_eq!(ticks(1e9, ns), ns);
            // 14 ticks are 5 ns.
            assert_eq!(ticks(2.8e9, ns), (ns * 14 + 4) / 5);
            assert_eq!(ticks(24e6, ns), (ns * 3 + 124) / 125);
        }
        assert_eq!(ticks(1e300, i64::MAX), i64::MAX);
    }
}
