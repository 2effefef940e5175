//! The unit of a file's ticks.
//!
//! No field of a file has it. Old builds of libfxt read the TSC, current ones `CLOCK_MONOTONIC` (ns), and both write
//! the CPU's MHz. Two comparisons are possible:
//!
//! * The first tick with the uptime at the start. `times(2)` counts the uptime in jiffies of 10 ms; Linux starts it 300
//!   s before 2^32 ticks of its own clock (`INITIAL_JIFFIES`), so its start depends on the kernel's HZ. 32-bit ticks do
//!   not allow this comparison.
//! * The ticks from the first record to the last with the time from start to stop. The clock advanced at least by these
//!   ticks in that time, which excludes a clock that is too slow.

use sigmund_model::{ClockDomain, Hertz};

use super::infos::TimeBlock;

/// Values of HZ in kernels of distributions.
const KERNEL_HZ: [u64; 4] = [250, 1000, 100, 300];

/// The time between the first record and the start in the file is that of `fut_setup`, which is far shorter.
const UPTIME_TOLERANCE_S: f64 = 2.0;

/// A clock that is faster than its rate by more than this factor is excluded.
const RATE_TOLERANCE: f64 = 1.05;

/// The unit of the ticks, and the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clock {
    pub(super) domain: ClockDomain,
    /// Ticks per second, if it is a TSC.
    pub(super) hz: Option<Hertz>,
    pub(super) because: String,
}

/// The ticks of the first and of the last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Whether they were widened from 32 bits.
    pub(super) narrow: bool,
}

/// Determines the unit of the ticks.
pub(super) fn decide(time: Option<&TimeBlock>, span: Option<Span>) -> Clock {
    let hz = time.and_then(|time| Hertz::new(f64::from(time.mhz) * 1e6));
    let evidence = time.zip(span).and_then(|(time, span)| {
        let by_uptime = if span.narrow { None } else { by_uptime(time, span, hz) };
        by_uptime.or_else(|| by_rate(time, span, hz))
    });
    let (is_tsc, because) = evidence.unwrap_or_else(|| match span {
        Some(Span { narrow: true, .. }) => (true, "assumed: FKT reads the TSC".to_owned()),
        _ => (false, "assumed: current libfxt reads CLOCK_MONOTONIC".to_owned()),
    });
    match is_tsc {
        true => Clock { domain: ClockDomain::Tsc, hz, because },
        false => Clock { domain: ClockDomain::Monotonic, hz: None, because },
    }
}

/// Whether it is the TSC, as far as the uptime shows.
fn by_uptime(time: &TimeBlock, span: Span, hz: Option<Hertz>) -> Option<(bool, String)> {
    let uptime = |kernel_hz: u64| {
        let base = ((1 << 32) - 300 * kernel_hz) * 100 / kernel_hz;
        time.start_jiffies.checked_sub(base).map(|jiffies| jiffies as f64 / 100.0)
    };
    let is_at = |seconds: f64| {
        let same = |up: f64| up > 0.0 && (up - seconds).abs() < UPTIME_TOLERANCE_S;
        KERNEL_HZ.into_iter().find(|kernel_hz| uptime(*kernel_hz).is_some_and(same))
    };
    let nanos = is_at(span.first as f64 / 1e9);
    let tsc = hz.and_then(|hz| is_at(span.first as f64 / hz.per_second()));
    let reason = |what: &str, kernel_hz| {
        let up = uptime(kernel_hz).unwrap_or_default();
        format!("the first tick, {}, is the uptime of {up:.2} s (HZ {kernel_hz}) in {what}", span.first)
    };
    match (nanos, tsc) {
        (Some(kernel_hz), None) => Some((false, reason("ns", kernel_hz))),
        (None, Some(kernel_hz)) => Some((true, reason("TSC ticks", kernel_hz))),
        _ => None,
    }
}

/// Whether it is the TSC, if there are too many ticks for ns, or nearly as many as there are ns.
fn by_rate(time: &TimeBlock, span: Span, hz: Option<Hertz>) -> Option<(bool, String)> {
    let jiffies = time.stop_jiffies.checked_sub(time.start_jiffies).filter(|j| *j >= 50)?;
    // The count may be too low by one.
    let seconds = (jiffies as f64 + 1.0) / 100.0;
    let rate = span.last.checked_sub(span.first)? as f64 / seconds;
    let reason = format!("{} ticks in {seconds:.2} s by the jiffies", span.last - span.first);
    let hz = hz?.per_second();
    if rate > 1e9 * RATE_TOLERANCE && rate <= hz * RATE_TOLERANCE {
        return Some((true, reason));
    }
    // A TSC with a rate near 1 GHz cannot be distinguished from ns.
    let nanos = (1e9 / RATE_TOLERANCE..=1e9 * RATE_TOLERANCE).contains(&rate);
    (nanos && hz > 1.5e9 && !span.narrow).then_some((false, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(start_jiffies: u64, stop_jiffies: u64) -> TimeBlock {
        TimeBlock { mhz: 2596, start_jiffies, stop_jiffies, ..TimeBlock::default() }
    }

    fn span(first: u64, last: u64) -> Option<Span> {
        Some(Span { first, last, narrow: false })
    }

    #[test]
    fn the_uptime_distinguishes_nanoseconds_from_the_tsc() {
        // As in the fixture: a kernel of 250 Hz, up for 1578.58 s.
        let start = 1_718_114_776;
        let clock = decide(Some(&time(start, start)), span(1_578_828_407_809, 1_578_828_429_171));
        assert_eq!((clock.domain, clock.hz), (ClockDomain::Monotonic, None));
        assert!(clock.because.contains("1578.58 s (HZ 250) in ns"), "{}", clock.because);
        let tsc = (1578.6 * 2.596e9) as u64;
        let clock = decide(Some(&time(start, start)), span(tsc, tsc + 1000));
        assert_eq!(clock.domain, ClockDomain::Tsc);
        assert_eq!(clock.hz, Hertz::new(2.596e9));
    }

    #[test]
    fn too_many_ticks_for_nanoseconds_are_a_tsc() {
        let decided = |ticks: u64| decide(Some(&time(0, 1000)), span(5, 5 + ticks));
        assert_eq!(decided(25_000_000_000).domain, ClockDomain::Tsc);
        assert_eq!(decided(9_990_000_000).domain, ClockDomain::Monotonic);
        assert!(decided(9_990_000_000).because.contains("10.01 s"));
        assert!(decided(2_000_000_000).because.starts_with("assumed"));
        assert!(decide(None, None).because.starts_with("assumed"));
    }

    #[test]
    fn times_at_their_limits_decide_nothing() {
        let clock = decide(Some(&time(0, u64::MAX)), span(0, u64::MAX));
        assert!(clock.because.starts_with("assumed"), "{}", clock.because);
    }

    #[test]
    fn ticks_of_32_bits_are_a_tsc_unless_the_file_shows_otherwise() {
        let narrow = Some(Span { first: 5, last: 500, narrow: true });
        assert_eq!(decide(Some(&time(0, 10)), narrow).domain, ClockDomain::Tsc);
    }
}
