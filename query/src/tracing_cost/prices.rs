//! What a record and a word of it cost, by the LWP that records.

use std::collections::HashMap;

use arrow::{
    array::{Array, AsArray},
    datatypes::Int32Type,
};
use foldhash::fast::RandomState;
use sigmund_model::{Level, tables::info_keys};
use sigmund_sql::SuperTrace;

use crate::Error;

/// Ticks of a record, and of each word in it.
type Price = (f64, f64);

/// Prices, and the words that declarations show.
pub(super) struct Prices {
    of_lwps: HashMap<i32, Price, RandomState>,
    /// The mean of all processes: for LWPs of a process without a price, or of an unknown one.
    mean: Price,
    words: HashMap<String, u64, RandomState>,
    last: Option<(i32, Price)>,
}

impl Prices {
    pub(super) async fn read(trace: &SuperTrace) -> Result<Prices, Error> {
        let records = of_processes(trace, info_keys::PROBE_TICKS);
        let words = of_processes(trace, info_keys::PROBE_WORD_TICKS);
        let mean = (mean(&records), mean(&words));
        let mut of_lwps = HashMap::default();
        for batch in trace.sql("SELECT lwp, pid FROM raw_lwps WHERE pid IS NOT NULL").await?.collect().await?
        {
            let [lwps, pids] = [0, 1].map(|place| batch.column(place).as_primitive::<Int32Type>());
            for row in (0..batch.num_rows()).filter(|row| pids.is_valid(*row)) {
                let pid = i64::from(pids.value(row));
                let of =
                    |prices: &HashMap<i64, f64, RandomState>, mean| prices.get(&pid).copied().unwrap_or(mean);
                of_lwps.insert(lwps.value(row), (of(&records, mean.0), of(&words, mean.1)));
            }
        }
        let mut words: HashMap<String, u64, RandomState> = HashMap::default();
        for event in trace.event_types().iter().filter(|event| event.ty.level == Level::User) {
            let of_name = words.entry(event.ty.name.clone()).or_default();
            *of_name = (*of_name).max(event.ty.fields.len() as u64);
        }
        Ok(Prices { of_lwps, mean, words, last: None })
    }

    /// The words of an event of this name, but for those of texts after their lengths.
    pub(super) fn declared_words(&self, name: Option<&str>) -> u64 {
        name.and_then(|name| self.words.get(name)).copied().unwrap_or(0)
    }

    /// What this LWP pays.
    pub(super) fn of(&mut self, lwp: Option<i32>) -> Price {
        let Some(lwp) = lwp else { return self.mean };
        if let Some((_, price)) = self.last.filter(|(last, _)| *last == lwp) {
            return price;
        }
        let price = self.of_lwps.get(&lwp).copied().unwrap_or(self.mean);
        self.last = Some((lwp, price));
        price
    }
}

/// The value of a key of `info` for each process; of one that executed another program, the later value.
fn of_processes(trace: &SuperTrace, key: &str) -> HashMap<i64, f64, RandomState> {
    let of_key = |(name, value): (&str, &str)| {
        Some((name.strip_prefix(key)?.parse::<i64>().ok()?, value.parse::<f64>().ok()?))
    };
    trace.info().iter().filter_map(of_key).collect()
}

fn mean(prices: &HashMap<i64, f64, RandomState>) -> f64 {
    if prices.is_empty() { 0.0 } else { prices.values().sum::<f64>() / prices.len() as f64 }
}
