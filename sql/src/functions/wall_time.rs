//! `wall_time(tick)`: when that was by the machine's clock, UTC.

use std::sync::{Arc, OnceLock};

use arrow::{
    array::{Array, ArrayRef, AsArray, TimestampNanosecondArray},
    datatypes::{DataType, Int64Type, TimeUnit},
};
use datafusion::{error::DataFusionError, logical_expr::ScalarUDF};
use sigmund_model::{Hertz, tables::CLOCKS};

use super::scalar::of_number;
use crate::{Error, Info, files::Files};

/// The function. Between two snapshots of the clock it is on the line through them, and before the first and after the last
/// at the rate of the main clock. NULL if the recording has no snapshot of it. Snapshots are read when they are first needed.
pub(super) fn wall_time(files: &Arc<Files>, info: &Info) -> ScalarUDF {
    let (files, known) = (Arc::clone(files), OnceLock::new());
    of_snapshots(info.tick_hz(), move || {
        if let Some(snapshots) = known.get() {
            return Ok(Arc::clone(snapshots));
        }
        let read: Arc<[Snapshot]> = read(&files)?.into();
        Ok(Arc::clone(known.get_or_init(|| read)))
    })
}

/// The function, with snapshots that are known.
pub(super) fn with_snapshots(tick_hz: Option<Hertz>, snapshots: &[Snapshot]) -> ScalarUDF {
    let snapshots: Arc<[Snapshot]> = snapshots.into();
    of_snapshots(tick_hz, move || Ok(Arc::clone(&snapshots)))
}

fn of_snapshots(
    tick_hz: Option<Hertz>,
    snapshots: impl Fn() -> Result<Arc<[Snapshot]>, Error> + Send + Sync + 'static,
) -> ScalarUDF {
    let nanos_per_tick = tick_hz.map(|hz| 1e9 / hz.per_second());
    of_number("wall_time", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), move |ticks| {
        let snapshots = snapshots().map_err(|error| DataFusionError::External(Box::new(error)))?;
        let times = ticks.iter().map(|tick| at(&snapshots, nanos_per_tick, tick?));
        Ok(Arc::new(times.collect::<TimestampNanosecondArray>().with_timezone("UTC")) as ArrayRef)
    })
}

/// An instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// By the main clock.
    pub tick: i64,
    /// By the machine's, since 1970.
    pub nanos: i64,
}

/// Those that the conversion of events uses, too, in the order of time.
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

fn at(snapshots: &[Snapshot], nanos_per_tick: Option<f64>, tick: i64) -> Option<i64> {
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
