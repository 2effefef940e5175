//! How a user names an instant.

use std::{fmt, str::FromStr};

use sigmund_model::{Nanos, Ticks};
use sigmund_sql::SuperTrace;

use crate::Error;

/// An instant: a tick of the trace's clock (`97615576`), or a time from the first event (`1.5ms`, `+3s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
    /// This tick.
    Tick(Ticks),
    /// Time since the first event.
    Since(Nanos),
}

/// Longest suffix first, because `ms` also ends with `s`.
const UNITS: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

impl Instant {
    /// The tick of this trace.
    pub(crate) fn resolve(self, trace: &SuperTrace) -> Result<Ticks, Error> {
        match self {
            Instant::Tick(tick) => Ok(tick),
            Instant::Since(nanos) => {
                let rate = trace.tick_hz().ok_or_else(|| Error::unknown_rate(trace, &self.to_string()))?;
                let first = trace.first_tick().unwrap_or_default();
                Ok(Ticks(first.0.saturating_add(rate.to_ticks(nanos).0)))
            }
        }
    }
}

impl FromStr for Instant {
    type Err = Error;

    fn from_str(text: &str) -> Result<Instant, Error> {
        let refuse = |expected: &str| Error::argument(format!("expected {expected}, found `{text}`"));
        let wrong = || refuse("ticks, or a time from the first event in ns, us, ms or s (1.5ms)");
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let tick = text.parse().map_err(|_| refuse("ticks of at most 64 bits"))?;
            return Ok(Instant::Tick(Ticks(tick)));
        }
        if text.strip_prefix('-').is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit())) {
            return Err(refuse("a time after the first event"));
        }
        let time = text.strip_prefix('+').unwrap_or(text);
        let (number, nanos) = UNITS
            .iter()
            .find_map(|(unit, nanos)| Some((time.strip_suffix(unit)?.trim_end(), nanos)))
            .ok_or_else(wrong)?;
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: f64 = number.parse().map_err(|_| wrong())?;
        Ok(Instant::Since(Nanos((number * nanos).round() as u64)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Instant::Tick(tick) => tick.0.fmt(f),
            Instant::Since(Nanos(nanos)) => f.write_str(&with_unit(*nanos)),
        }
    }
}

/// Uses the largest unit in which the value is at least one, without rounding. Zero, and values too large to be exact
/// as a fraction, are in nanoseconds.
fn with_unit(nanos: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
    let unit = units.into_iter().find(|(_, unit)| nanos >= *unit);
    let Some((name, unit)) = unit.filter(|_| nanos < 1 << 53) else { return format!("{nanos}ns") };
    let text = match nanos % unit {
        0 => format!("{}{name}", nanos / unit),
        rest => {
            let places = unit.ilog10() as usize;
            let text = format!("{}.{rest:0places$}", nanos / unit);
            format!("{}{name}", text.trim_end_matches('0'))
        }
    };
    match text.parse::<Instant>() {
        Ok(Instant::Since(Nanos(again))) if again == nanos => text,
        _ => format!("{nanos}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_ticks_or_a_time_with_its_unit() {
        let instant = |text: &str| text.parse::<Instant>().ok();
        assert_eq!(instant("97615576"), Some(Instant::Tick(Ticks(97615576))));
        assert_eq!(instant("1.5ms"), Some(Instant::Since(Nanos(1_500_000))));
        assert_eq!(instant("+3s"), Some(Instant::Since(Nanos(3_000_000_000))));
        assert_eq!(instant("20us"), Some(Instant::Since(Nanos(20_000))));
        assert_eq!(instant("7 ns"), Some(Instant::Since(Nanos(7))));
        for same in ["5s", "1.5ms", "20us", "7ns", "0ns", "1.000000001s", "97615576"] {
            assert_eq!(instant(same).unwrap().to_string(), same);
        }
        for wrong in ["", "s", "+5", "1.5", "3min", "infs", "1e", "--to"] {
            let error = wrong.parse::<Instant>().unwrap_err().to_string();
            assert!(error.contains("in ns, us, ms or s"), "{wrong}: {error}");
        }
        let refused = |text: &str| text.parse::<Instant>().unwrap_err().to_string();
        assert_eq!(refused("-3s"), "expected a time after the first event, found `-3s`");
        assert!(refused("99999999999999999999").starts_with("expected ticks of at most 64 bits"));
    }
}
