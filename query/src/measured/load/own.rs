//! The rows of `thread_states` of the threads that a question is about.
//!
//! If these rows are few, only they are read: for all other rows, only the column `thread` is decoded. The rows of other threads
//! are read only for the times in which one of the selected threads was stalled. They show who had the CPU then.

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
use sigmund_measures::{Interval, Row, Slicer, ThreadRow, Words};
use sigmund_model::{Hertz, ThreadState, tables::THREAD_STATES};
use sigmund_sql::{SuperTrace, Useful};

use super::{
    reader::{Reader, Wanted},
    states,
};
use crate::Error;

/// The maximum number of rows that are kept. With more, all rows are read, slice by slice.
const MOST_ROWS: usize = 1 << 19;
/// Two stalls count as one time if the gap between them is shorter than the time from the first stall to the last, divided by this.
const PARTS: i64 = 4096;

/// The rows of the selected threads. They were all read before the first slice.
pub(super) struct OwnRows {
    rows: Option<Vec<ThreadRow>>,
    latest: i64,
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
        let numbers: Arc<BTreeSet<i64>> = Arc::new(threads.iter().map(|thread| *thread as i64).collect());
        let (times, unended, window) = (Arc::clone(&wanted.times), wanted.unended, wanted.window);
        let count = AtomicUsize::new(0);
        let read = move || {
            let of_group = |group: usize| {
                if count.load(Ordering::Relaxed) > MOST_ROWS {
                    return Ok(None);
                }
                let useful = Useful { times: &times, unended };
                let batch = groups.read_where(group, useful, ("thread", &numbers))?;
                count.fetch_add(batch.num_rows(), Ordering::Relaxed);
                Ok(Some(states::of_threads(&batch, last, hz).rows))
            };
            let first =
                |group: &usize| groups.bounds(*group, "ts_tick").is_none_or(|(first, _)| first <= window.to);
            let rows = (0..groups.len()).into_par_iter().filter(first).map(of_group);
            let rows: Option<Vec<_>> = rows.collect::<Result<Option<Vec<_>>, sigmund_sql::Error>>()?;
            Ok::<_, sigmund_sql::Error>(rows.filter(|_| count.load(Ordering::Relaxed) <= MOST_ROWS))
        };
        let rows = SpawnedTask::spawn_blocking(read).join().await.map_err(Error::of_task)??;
        Ok(rows.map(|rows| {
            let mut rows: Vec<ThreadRow> = rows.into_iter().flatten().collect();
            rows.retain(|row| row.interval().from <= window.to);
            let latest = rows.iter().map(|row| row.interval().to).max().unwrap_or(i64::MIN);
            OwnRows { rows: Some(rows), latest, window }
        }))
    }

    /// The times in which one of the threads was stalled: sorted, and apart from each other.
    pub(super) fn stalls(&self) -> Arc<[(i64, i64)]> {
        let rows = self.rows.iter().flatten();
        let mut stalls: Vec<(i64, i64)> = rows
            .filter(|(_, _, stay)| stay.state == ThreadState::Stalled)
            .map(|(_, interval, _)| (interval.from, interval.to))
            .collect();
        stalls.sort_unstable();
        let apart = stalls
            .last()
            .zip(stalls.first())
            .map_or(0, |(last, first)| last.0.saturating_sub(first.0) / PARTS);
        let mut times: Vec<(i64, i64)> = Vec::new();
        for (from, to) in stalls {
            match times.last_mut() {
                Some(last) if from <= last.1.saturating_add(apart) => last.1 = last.1.max(to),
                _ => times.push((from, to)),
            }
        }
        times.into()
    }
}

#[async_trait]
impl Reader for OwnRows {
    fn window(&self) -> Interval {
        self.window
    }

    fn latest(&self) -> Option<i64> {
        self.rows.as_ref().map(|_| self.latest)
    }

    async fn advance(&mut self, slicer: &mut Slicer, until: i64) -> Result<(usize, bool), Error> {
        let rows = self.rows.take().unwrap_or_default();
        let is_late = rows.iter().any(|row| row.interval().to >= until);
        let count = rows.len();
        slicer.threads(rows, &Words::default());
        Ok((count, is_late))
    }
}
