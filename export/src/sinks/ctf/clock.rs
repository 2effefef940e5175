//! The clock of the trace in TSDL: an integral number of ticks per second, and the time of its zero.

use crate::timeline;

/// Ticks per second if the clock's rate is unknown: a tick counts as a nanosecond.
const NANOS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// Ticks per second, rounded to the nearest integer.
    pub(super) freq: u64,
    /// Ticks from 1970 to the clock's zero; 0 if unknown.
    pub(super) offset: u64,
}

impl Clock {
    /// The clock of a timeline. The offset is one number of ticks, without `offset_s`, because Trace Compass supports
    /// only that: 63 bits suffice up to 5 GHz. An offset that would be negative or longer is 0.
    pub(super) fn of(clock: &timeline::Clock) -> Clock {
        let freq =
            clock.rate.map_or(NANOS, |rate| (rate.per_second().round() as u64).clamp(1, i64::MAX as u64));
        let ticks_at_first =
            clock.realtime_at_first.map(|ns| i128::from(ns) * i128::from(freq) / i128::from(NANOS));
        let offset = ticks_at_first.map_or(0, |ticks| ticks - i128::from(clock.first.0));
        Clock { freq, offset: i64::try_from(offset).ok().and_then(|o| u64::try_from(o).ok()).unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::{Hertz, Ticks};

    use super::*;

    #[test]
    fn the_offset_leads_from_ticks_to_the_time_of_day() {
        let clock = timeline::Clock {
            first: Ticks(2_500_000_000),
            last: Ticks(2_500_000_001),
            rate: Hertz::new(2.5e9),
            realtime_at_first: Some(1_700_000_000_000_000_000),
        };
        let offset = 1_700_000_000 * 2_500_000_000 - 2_500_000_000;
        assert_eq!(Clock::of(&clock), Clock { freq: 2_500_000_000, offset });
        let unknown = timeline::Clock { rate: None, realtime_at_first: None, ..clock };
        assert_eq!(Clock::of(&unknown), Clock { freq: NANOS, offset: 0 });
        let before_1970 = timeline::Clock { realtime_at_first: Some(-5), ..clock };
        assert_eq!(Clock::of(&before_1970).offset, 0);
    }
}
