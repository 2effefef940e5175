//! What a question about locks needs of the states: those while somebody waited for a lock.

use std::collections::{BTreeSet, HashSet};

use arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use foldhash::fast::RandomState;
use sigmund_measures::{Interval, Needs, Slicer};
use sigmund_model::{
    Hertz, ThreadState,
    tables::{LOCKS, LWP_STATES, THREAD_STATES},
};
use sigmund_sql::{RowGroups, SuperTrace};

use super::{
    AHEAD,
    cells::{Small, Wide, Words, booleans, interval},
    reader::{Reader, TableReader, Wanted},
    states,
    times::Times,
};
use crate::Error;

/// With more waits than this, all rows are read.
const MOST_WAITS: usize = 1 << 20;

/// The times in which somebody waited for a lock; or other times of which a measure needs the states.
pub(super) struct Waited(Times);

impl Waited {
    /// These times.
    pub(super) fn of(times: &[Interval]) -> Waited {
        Waited(Times::union(times.iter().map(|time| (time.from, time.to)).collect()))
    }

    /// Of the waits that overlap a window, of these threads only if there are some. `None` if there are too many, or a wait most of the
    /// time, so that nearly all rows are needed.
    pub(super) async fn read(
        trace: &SuperTrace,
        threads: Option<&BTreeSet<u64>>,
        window: Interval,
    ) -> Result<Option<Waited>, Error> {
        if trace.info().left_out_tables().any(|table| table == LOCKS.name) {
            return Ok(Some(Waited(Times::default())));
        }
        let groups = trace.row_groups(&LOCKS, OF_WAITS)?;
        let threads = threads.cloned();
        let waits = move || waits(&groups, threads.as_ref(), window);
        let waits = SpawnedTask::spawn_blocking(waits).join().await.map_err(Error::of_task)??;
        let Some(waits) = waits else { return Ok(None) };
        let times = Times::union(waits);
        let lengths = times.as_slice().iter().map(|(from, to)| to.saturating_sub(*from));
        let waited = lengths.fold(0, i64::saturating_add);
        let (first, last) = (trace.first_tick(), trace.last_tick());
        let length = match first.zip(last) {
            Some((first, last)) => {
                window.to.min(last.0 as i64).saturating_sub(window.from.max(first.0 as i64))
            }
            None => 0,
        };
        Ok((times.is_empty() || waited < length / 2).then_some(Waited(times)))
    }

    /// These times.
    pub(super) fn times(&self) -> Times {
        self.0.clone()
    }

    /// Whether nobody waited.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Readers of the states of user threads and LWPs: of all that `of_states` and `of_lwps` select, the rows that are of use.
    pub(super) fn readers(
        self,
        trace: &SuperTrace,
        needs: Needs,
        (of_states, of_lwps): (Wanted, Wanted),
        (last, hz): (i64, Option<Hertz>),
    ) -> Result<Vec<Box<dyn Reader>>, Error> {
        let Waited(times) = self;
        let mut readers: Vec<Box<dyn Reader>> = Vec::new();
        if times.is_empty() {
            return Ok(readers);
        }
        if needs.thread_states {
            let (times, window) = (times.clone(), of_states.window);
            let decode = move |batch: &RecordBatch| {
                let first = first_on_lwps(batch, window, last);
                let mut touched = times.touched();
                states::of_threads(batch, (last, hz), |row, _, interval| {
                    touched.has(interval.from, interval.to) || first[row]
                })
            };
            let table = (&THREAD_STATES, states::OF_THREADS);
            readers.push(TableReader::open_ahead(trace, table, of_states, decode, Slicer::threads, AHEAD)?);
        }
        if needs.lwp_states {
            let decode = move |batch: &RecordBatch| {
                let matters = states::lwps_near(batch, last, &times);
                states::of_lwps(batch, last, |row, _| matters[row])
            };
            let table = (&LWP_STATES, states::OF_LWPS);
            readers.push(TableReader::open_ahead(trace, table, of_lwps, decode, Slicer::lwps, AHEAD)?);
        }
        Ok(readers)
    }
}

const OF_WAITS: &[&str] = &["ts_tick", "wait_tick", "thread", "contended"];

fn waits(
    groups: &RowGroups,
    threads: Option<&BTreeSet<u64>>,
    window: Interval,
) -> Result<Option<Vec<(i64, i64)>>, sigmund_sql::Error> {
    let mut waits = Vec::new();
    for group in 0..groups.len() {
        let batch = groups.read(group)?;
        let (tick, wait, thread) = (Wide::of(&batch, 0), Wide::of(&batch, 1), Wide::of(&batch, 2));
        let contended = booleans(&batch, 3);
        for row in 0..batch.num_rows() {
            let is_asked = || {
                threads
                    .is_none_or(|threads| thread.thread(row).is_some_and(|thread| threads.contains(&thread)))
            };
            let from = tick.or_zero(row);
            let to = from.saturating_add(wait.or_zero(row));
            if contended.value(row) && from <= window.to && to >= window.from && is_asked() {
                waits.push((from, to));
            }
        }
        if waits.len() > MOST_WAITS {
            return Ok(None);
        }
    }
    Ok(Some(waits))
}

/// Of rows with columns [`states::OF_THREADS`], the first on each LWP that overlaps the window. They show which LWPs carry user
/// threads at all.
fn first_on_lwps(batch: &RecordBatch, window: Interval, last: i64) -> Vec<bool> {
    let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
    let is_mounted = Words::of(batch, 3, |word| {
        !matches!(states::thread_state(word), ThreadState::Unknown | ThreadState::Exited)
    });
    let lwp = Small::of(batch, 4);
    let mut seen: HashSet<u32, RandomState> = HashSet::default();
    let is_first = |row| {
        let interval = interval(from.or_zero(row), length.get(row), last);
        let lwp = lwp.get(row).filter(|_| is_mounted.get(row) == Some(true));
        lwp.is_some_and(|lwp| !seen.contains(&lwp) && interval.clipped(window).is_some() && seen.insert(lwp))
    };
    (0..batch.num_rows()).map(is_first).collect()
}
