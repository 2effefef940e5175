//! The times in which an LWP that carries no user thread was awake before it unparked one of the threads that a question is about.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use sigmund_measures::Interval;
use sigmund_model::tables::WAKEUPS;
use sigmund_sql::{RowGroups, SuperTrace, Useful};

use super::{
    cells::{Small, Wide, Words},
    times::Times,
};
use crate::Error;

/// With more unparks than this, all rows are read.
const MOST_UNPARKS: usize = 1 << 20;

/// For each LWP, the ticks at which it unparked one of the threads. Sorted.
type Unparks = BTreeMap<u32, Vec<i64>>;

/// These times, of the unparks in `window`; each begins with the last wakeup of the LWP before, or earlier. `None` if there are too
/// many.
pub(super) async fn before_unparks(
    trace: &SuperTrace,
    threads: &BTreeSet<u64>,
    window: Interval,
) -> Result<Option<Times>, Error> {
    if trace.info().left_out_tables().any(|table| table == WAKEUPS.name) {
        return Ok(Some(Times::default()));
    }
    let unparks = trace.row_groups(&WAKEUPS, OF_UNPARKS)?;
    let wakeups = trace.row_groups(&WAKEUPS, OF_WAKEUPS)?;
    let threads = Arc::new(threads.iter().map(|thread| *thread as i64).collect());
    let find = move || {
        let Some(mut unparks) = unparks_of(&unparks, &threads, window)? else { return Ok(None) };
        let mut times = Vec::new();
        for group in (0..wakeups.len()).rev() {
            if unparks.is_empty() {
                break;
            }
            if wakeups.bounds(group, "ts_tick").is_none_or(|(first, _)| first <= window.to) {
                find_wakeups(&wakeups.read(group)?, &mut unparks, &mut times);
            }
        }
        let without = unparks.into_values().flatten().map(|unpark| (i64::MIN, unpark));
        times.extend(without);
        Ok::<_, sigmund_sql::Error>(Some(Times::union(times)))
    };
    Ok(SpawnedTask::spawn_blocking(find).join().await.map_err(Error::of_task)??)
}

const OF_UNPARKS: &[&str] = &["ts_tick", "level", "waker_lwp", "waker_thread", "thread"];

fn unparks_of(
    groups: &RowGroups,
    threads: &Arc<BTreeSet<i64>>,
    window: Interval,
) -> Result<Option<Unparks>, sigmund_sql::Error> {
    let (mut unparks, mut count) = (Unparks::new(), 0);
    for group in 0..groups.len() {
        let useful = Useful { times: &[(i64::MIN, window.to)], unended: true };
        let batch = groups.read_where(group, useful, ("thread", threads))?;
        count += add_unparks(&batch, &mut unparks);
        if count > MOST_UNPARKS {
            return Ok(None);
        }
    }
    unparks.values_mut().for_each(|ticks| ticks.sort_unstable());
    Ok(Some(unparks))
}

/// Adds the unparks by LWPs without a user thread, from columns [`OF_UNPARKS`]. Returns how many there are.
fn add_unparks(batch: &RecordBatch, unparks: &mut Unparks) -> usize {
    let (tick, is_unpark) = (Wide::of(batch, 0), Words::of(batch, 1, |word| word == "USER"));
    let (lwp, thread) = (Small::of(batch, 2), Wide::of(batch, 3));
    let mut count = 0;
    for row in (0..batch.num_rows()).filter(|row| is_unpark.get(*row) == Some(true)) {
        if let (Some(lwp), None) = (lwp.get(row), thread.thread(row)) {
            unparks.entry(lwp).or_default().push(tick.or_zero(row));
            count += 1;
        }
    }
    count
}

const OF_WAKEUPS: &[&str] = &["ts_tick", "level", "lwp", "latency_tick"];

/// Finds the last wakeup of the LWP before each unpark, in rows of columns [`OF_WAKEUPS`]. Removes the unparks for which there is
/// one, and adds their times.
fn find_wakeups(batch: &RecordBatch, unparks: &mut Unparks, times: &mut Vec<(i64, i64)>) {
    let (tick, is_unpark) = (Wide::of(batch, 0), Words::of(batch, 1, |word| word == "USER"));
    let (lwp, latency) = (Small::of(batch, 2), Wide::of(batch, 3));
    for row in (0..batch.num_rows()).rev() {
        let (Some(lwp), Some(latency), Some(false)) = (lwp.get(row), latency.get(row), is_unpark.get(row))
        else {
            continue;
        };
        let Some(of_lwp) = unparks.get_mut(&lwp) else { continue };
        let (from, ran) = (tick.or_zero(row), tick.or_zero(row).saturating_add(latency));
        let first = of_lwp.partition_point(|unpark| *unpark < ran);
        times.extend(of_lwp.drain(first..).map(|unpark| (from, unpark)));
        if of_lwp.is_empty() {
            unparks.remove(&lwp);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{ArrayRef, DictionaryArray, Int32Array, Int64Array},
        datatypes::Int32Type,
    };

    use super::*;

    /// LWPs 70 and 71 are woken and run; 70 unparks thread 1, 71 unparks it with and without a thread of its own, and 72, which
    /// nobody was seen to wake, unparks it.
    #[test]
    fn a_poller_is_of_interest_from_its_last_wakeup_to_the_unpark() {
        // Tick, whether it is an unpark, waker LWP, waker thread, woken LWP, woken thread, latency.
        type Row = (i64, bool, i32, Option<i64>, Option<i32>, Option<i64>, Option<i64>);
        let rows: [Row; 9] = [
            (10, false, 0, None, Some(70), None, Some(2)),
            (14, false, 0, None, Some(71), None, Some(2)),
            (20, true, 70, None, None, Some(1), Some(3)),
            (21, true, 71, Some(9), None, Some(1), Some(5)),
            (22, true, 72, None, None, Some(1), Some(6)),
            (30, false, 0, None, Some(70), None, Some(10)),
            (40, true, 70, None, None, Some(1), Some(1)),
            (39, true, 70, None, None, Some(1), Some(3)),
            (50, false, 0, None, Some(72), None, None),
        ];
        let wide = |of: &dyn Fn(&Row) -> Option<i64>| {
            Arc::new(rows.iter().map(of).collect::<Int64Array>()) as ArrayRef
        };
        let small = |of: &dyn Fn(&Row) -> Option<i32>| {
            Arc::new(rows.iter().map(of).collect::<Int32Array>()) as ArrayRef
        };
        let level: DictionaryArray<Int32Type> =
            rows.iter().map(|row| Some(if row.1 { "USER" } else { "KERN" })).collect();
        let (tick, level) = (wide(&|row| Some(row.0)), Arc::new(level) as ArrayRef);
        let columns = |columns: Vec<(&str, ArrayRef)>| {
            let columns = columns.into_iter().map(|(name, column)| (name, column, true));
            RecordBatch::try_from_iter_with_nullable(columns).unwrap()
        };
        let of_unparks = columns(vec![
            ("ts_tick", tick.clone()),
            ("level", level.clone()),
            ("waker_lwp", small(&|row| Some(row.2))),
            ("waker_thread", wide(&|row| row.3)),
            ("thread", wide(&|row| row.5)),
        ]);
        let of_wakeups = columns(vec![
            ("ts_tick", tick),
            ("level", level),
            ("lwp", small(&|row| row.4)),
            ("latency_tick", wide(&|row| row.6)),
        ]);
        let mut unparks = Unparks::new();
        assert_eq!(add_unparks(&of_unparks, &mut unparks), 4);
        unparks.values_mut().for_each(|ticks| ticks.sort_unstable());
        assert_eq!(unparks, Unparks::from([(70, vec![20, 39, 40]), (72, vec![22])]));
        let mut times = Vec::new();
        find_wakeups(&of_wakeups, &mut unparks, &mut times);
        times.sort_unstable();
        // The second wakeup of 70 led to a dispatch at 40.
        assert_eq!(times, [(10, 20), (10, 39), (30, 40)]);
        assert_eq!(unparks, Unparks::from([(72, vec![22])]));
    }
}
