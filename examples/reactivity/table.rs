//! Latencies, as a table in µs.

use std::time::Duration;

pub(crate) const HEAD: &str = "way                        p50         p90         p99         max  us";

/// In the order of arrival.
#[derive(Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn add(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    pub(crate) fn p99(&self) -> f64 {
        self.micros(0.99)
    }

    /// The smallest latency that `share` of all do not exceed.
    fn micros(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e6)
    }

    pub(crate) fn row(&self, name: &str) -> String {
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|share| self.micros(share));
        format!("{name:<20}{p50:>11.1} {p90:>11.1} {p99:>11.1} {max:>11.1}")
    }
}
