//! The rows of `thread_states` of the threads that a question is about.
//!
//! If these rows are not too many, only they are read: for all other rows, only the column `thread` is decoded. They show of which
//! times the rows of other threads and of LWPs are of use.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use datafusion::common::runtime::SpawnedTask;
use rayon::prelude::*;
use sigmund_measures::{Interval, Row, Slicer, ThreadRow, ThreadStay, Words};
use sigmund_model::{Hertz, ThreadState, tables::THREAD_STATES};
use sigmund_sql::{RowGroups, SuperTrace, Useful};

use super::{
    reader::{Reader, Wanted},
    states,
    times::Times,
};
use crate::Error;

/// The maximum number of rows that are kept (100 MB). With more, all rows are read, slice by slice.
const MOST_ROWS: usize = 1 << 21;
/// With a limit of memory, one for so many bytes of it.
const LIMIT_OF_ROW: usize = 512;
/// To look for some threads in a row group takes the time for all of its rows, divided by this.
const ROWS_WHERE: usize = 8;
/// The maximum number of rows that are given to a slice at a time.
const CHUNK: usize = 1 << 16;

/// The rows of the selected threads. They were all read before the first slice.
pub(super) struct OwnRows {
    /// In the order of the table. Those at the end were given to slices already.
    rows: Vec<ThreadRow>,
    /// For each chunk of them: the latest end of a row in it, or in a chunk before it.
    latest: Vec<i64>,
    window: Interval,
}

impl OwnRows {
    /// The rows of these threads that `wanted` selects; `None` if there are too many. `last` is the last tick of the trace.
    pub(super) async fn read(
        trace: &SuperTrace,
        threads: &BTreeSet<u64>,
        wanted: &Wanted,
        (last, hz): (i64, Option<Hertz>),
    ) -> Result<Option<OwnRows>, Error> {
        let groups = trace.row_groups(&THREAD_STATES, states::OF_THREADS)?;
        let since = wanted.times.as_slice().first().map_or(i64::MIN, |(from, _)| *from);
        if is_short(&groups, wanted.window, since) {
            return Ok(None);
        }
        let numbers: Arc<BTreeSet<i64>> = Arc::new(threads.iter().map(|thread| *thread as i64).collect());
        let (times, unended, window) = (wanted.times.clone(), wanted.unended, wanted.window);
        let most = trace.memory().map_or(MOST_ROWS, |limit| MOST_ROWS.min(limit / LIMIT_OF_ROW));
        let count = AtomicUsize::new(0);
        let read = move || {
            let of_group = |group: usize| {
                if count.load(Ordering::Relaxed) > most {
                    return Ok(None);
                }
                let useful = Useful { times: times.as_slice(), unended };
                let batch = groups.read_where(group, useful, ("thread", &numbers))?;
                count.fetch_add(batch.num_rows(), Ordering::Relaxed);
                Ok(Some(states::of_threads(&batch, (last, hz), |_, _, _| true).rows))
            };
            let first =
                |group: &usize| groups.bounds(*group, "ts_tick").is_none_or(|(first, _)| first <= window.to);
            let rows = (0..groups.len()).into_par_iter().filter(first).map(of_group);
            let rows: Option<Vec<_>> = rows.collect::<Result<Option<Vec<_>>, sigmund_sql::Error>>()?;
            Ok::<_, sigmund_sql::Error>(rows.filter(|_| count.load(Ordering::Relaxed) <= most))
        };
        let rows = SpawnedTask::spawn_blocking(read).join().await.map_err(Error::of_task)??;
        Ok(rows.map(|rows| {
            let rows = rows.into_iter().flatten().filter(|row| row.interval().from <= window.to);
            OwnRows::new(rows.collect(), window)
        }))
    }

    fn new(rows: Vec<ThreadRow>, window: Interval) -> OwnRows {
        let ends = rows.chunks(CHUNK).map(|rows| rows.iter().map(|row| row.interval().to).max());
        let latest = ends.scan(i64::MIN, |latest, end| {
            *latest = end.map_or(*latest, |end| end.max(*latest));
            Some(*latest)
        });
        OwnRows { latest: latest.collect(), rows, window }
    }

    /// The times in which one of the threads was stalled.
    pub(super) fn stalls(&self) -> Times {
        self.times(|stay| stay.state == ThreadState::Stalled)
    }

    /// The times in which one of the threads was on an LWP.
    pub(super) fn on_lwps(&self) -> Times {
        self.times(|stay| stay.lwp.is_some())
    }

    /// The times in which one of the threads was on an LWP that slept, or may have.
    pub(super) fn asleep(&self) -> Times {
        use ThreadState::{Active, Stalled};
        self.times(|stay| stay.lwp.is_some() && !matches!(stay.state, Active | Stalled))
    }

    fn times(&self, is_of_use: impl Fn(&ThreadStay) -> bool) -> Times {
        let rows = self.rows.iter().filter(|(_, _, stay)| is_of_use(stay));
        let times = rows.map(|row| (row.interval().from, row.interval().to));
        Times::union(times.collect())
    }
}

/// Whether to read all rows of a window takes less time than to look for those of some threads from `since` on, which is done in
/// case that the measure looks back.
fn is_short(groups: &RowGroups, window: Interval, since: i64) -> bool {
    let count = |from: i64| {
        let overlaps = |group: &usize| {
            groups.bounds(*group, "ts_tick").is_none_or(|(first, last)| first <= window.to && last >= from)
        };
        (0..groups.len()).filter(overlaps).count()
    };
    count(window.from).saturating_mul(ROWS_WHERE) < count(since)
}

#[async_trait]
impl Reader for OwnRows {
    fn window(&self) -> Interval {
        self.window
    }

    fn latest(&self) -> Option<i64> {
        self.latest.last().copied()
    }

    async fn advance(&mut self, slicer: &mut Slicer, until: i64) -> Result<(usize, bool), Error> {
        self.latest.pop();
        let rows = self.rows.split_off(self.latest.len() * CHUNK);
        let is_late = rows.iter().any(|row| row.interval().to >= until);
        let count = rows.len();
        slicer.threads(rows, &Words::default());
        Ok((count, is_late))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_are_given_to_slices_in_chunks_and_the_latest_end_of_the_rest_is_known() {
        let length = |row: i64| if row == 7 { 1_000_000 } else { 1 };
        let stay = |state, lwp| ThreadStay { state, lwp, waits_for: None, object: 0, end: None };
        let row = |row: i64| {
            let stay = match row {
                3 => stay(ThreadState::Stalled, Some(70)),
                4 => stay(ThreadState::Ready, None),
                6 => stay(ThreadState::InKernel, Some(70)),
                _ => stay(ThreadState::Active, Some(70)),
            };
            (1, Interval::new(10 * row, 10 * row + length(row)), stay)
        };
        let count = 2 * CHUNK as i64 + 5;
        let mut own = OwnRows::new((0..count).map(row).collect(), Interval::ALL);
        assert_eq!(own.stalls().as_slice(), [(30, 31)]);
        assert_eq!(own.on_lwps().as_slice()[..4], [(0, 1), (10, 11), (20, 21), (30, 31)]);
        assert_eq!(own.on_lwps().as_slice()[4], (50, 51));
        assert_eq!(own.asleep().as_slice(), [(60, 61)]);
        let mut slicer = Slicer::default();
        let end = 10 * (count - 1) + 1;
        for (latest, rows, is_late) in [
            (end, 5, true),
            (1_000_070.max(10 * (2 * CHUNK as i64 - 1) + 1), CHUNK, true),
            (1_000_070, CHUNK, true),
        ] {
            assert_eq!(own.latest(), Some(latest));
            assert_eq!(own.advance(&mut slicer, 1_000_000).await.unwrap(), (rows, is_late));
        }
        assert_eq!((own.latest(), slicer.rows()), (None, count as usize));
    }
}
