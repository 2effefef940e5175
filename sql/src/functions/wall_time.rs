//! Converts instants to the time of the machine's clock, by lines through snapshots.

use arrow::{
    array::{Array, AsArray},
    datatypes::{DataType, Int64Type},
};
use sigmund_model::tables::CLOCKS;

use crate::{Error, files::Files};

/// An instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// By the main clock.
    pub tick: i64,
    /// By the machine's clock, in nanoseconds since 1970.
    pub nanos: i64,
}

/// The snapshots that the conversion of events also uses, in time order.
pub(super) fn read(files: &Files) -> Result<Vec<Snapshot>, Error> {
    let columns = ["domain", "ns", "before_tick", "after_tick", "used"];
    let mut snapshots = Vec::new();
    for batch in files.read(&CLOCKS, &columns)? {
        let domains = arrow::compute::cast(batch.column(0), &DataType::Utf8);
        let Ok(domains) = domains else { continue };
        let numbers = [1, 2, 3].map(|place| batch.column(place).as_primitive::<Int64Type>());
        let used = batch.column(4).as_boolean();
        let rows =
            domains.as_string::<i32>().iter().enumerate().filter(|(_, domain)| *domain == Some("realtime"));
        snapshots.extend(rows.filter_map(|(row, _)| {
            let is_known = used.value(row) && numbers.iter().all(|column| column.is_valid(row));
            let [nanos, before, after] = numbers.map(|column| column.value(row));
            is_known.then(|| Snapshot { tick: before + (after - before) / 2, nanos })
        }));
    }
    snapshots.sort_by_key(|snapshot| snapshot.tick);
    snapshots.dedup_by_key(|snapshot| snapshot.tick);
    Ok(snapshots)
}

/// The time of the machine's clock at a tick. `None` if there is no snapshot, or if the tick is outside of all
/// snapshots and the rate is unknown.
pub(super) fn at(snapshots: &[Snapshot], nanos_per_tick: Option<f64>, tick: i64) -> Option<i64> {
    let after = snapshots.partition_point(|snapshot| snapshot.tick <= tick);
    let (from, rate) =
        match (after.checked_sub(1).and_then(|before| snapshots.get(before)), snapshots.get(after)) {
            (Some(before), Some(after)) => {
                let rate = after.nanos.checked_sub(before.nanos)? as f64 / (after.tick - before.tick) as f64;
                (before, rate)
            }
            (Some(only), None) | (None, Some(only)) => (only, nanos_per_tick?),
            (None, None) => return None,
        };
    from.nanos.checked_add((tick.checked_sub(from.tick)? as f64 * rate).floor() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_snapshots_it_is_on_their_line_and_outside_the_rate_counts() {
        let snapshots = [Snapshot { tick: 100, nanos: 1_000 }, Snapshot { tick: 200, nanos: 1_300 }];
        let times = [90, 100, 150, 200, 210].map(|tick| at(&snapshots, Some(2.0), tick));
        assert_eq!(times, [Some(980), Some(1_000), Some(1_150), Some(1_300), Some(1_320)]);
        assert_eq!((at(&snapshots, None, 150), at(&snapshots, None, 90)), (Some(1_150), None));
        assert_eq!(at(&[], Some(2.0), 90), None);
    }
}
