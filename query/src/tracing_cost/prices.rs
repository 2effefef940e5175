//! What a record and a word of it cost, by process.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::tables::info_keys;
use sigmund_sql::SuperTrace;

/// Ticks of a record, and of each word in it.
type Price = (f64, f64);

/// The prices of all processes.
pub(super) struct Prices {
    records: HashMap<i64, f64, RandomState>,
    words: HashMap<i64, f64, RandomState>,
    /// For a process without a price, or an unknown one.
    mean: Price,
}

impl Prices {
    pub(super) fn of(trace: &SuperTrace) -> Prices {
        let records = of_processes(trace, info_keys::PROBE_TICKS);
        let words = of_processes(trace, info_keys::PROBE_WORD_TICKS);
        let mean = (mean(&records), mean(&words));
        Prices { records, words, mean }
    }

    /// The price for a process.
    pub(super) fn of_process(&self, pid: Option<i32>) -> Price {
        let of = |prices: &HashMap<i64, f64, RandomState>, mean| {
            pid.and_then(|pid| prices.get(&pid.into()).copied()).unwrap_or(mean)
        };
        (of(&self.records, self.mean.0), of(&self.words, self.mean.1))
    }
}

/// The value of a key of `info` for each process. If a process executed another program, the later value counts.
fn of_processes(trace: &SuperTrace, key: &str) -> HashMap<i64, f64, RandomState> {
    let of_key = |(name, value): (&str, &str)| {
        Some((name.strip_prefix(key)?.parse::<i64>().ok()?, value.parse::<f64>().ok()?))
    };
    trace.info().iter().filter_map(of_key).collect()
}

fn mean(prices: &HashMap<i64, f64, RandomState>) -> f64 {
    if prices.is_empty() { 0.0 } else { prices.values().sum::<f64>() / prices.len() as f64 }
}
