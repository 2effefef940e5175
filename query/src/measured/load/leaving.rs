//! Of the rows of `thread_states`, those that matter to the search for pairs of events: where a thread stops being a
//! member.
//!
//! These are the states in which it waits or is unknown; see [`ends_membership`]. They are a quarter of the rows of a
//! program whose threads are switched often. All other states mean that the thread stayed a member, and so does their absence.
//! There are two exceptions, which are looked up first: a state that follows a wait of length 0, and the thread that an
//! LWP carried when it was woken, if the wakeup has no thread.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use rayon::prelude::*;
use sigmund_measures::{Interval, ThreadRow, ends_membership};
use sigmund_model::tables::{LWPS, THREAD_STATES, WAKEUPS};
use sigmund_sql::{RowGroups, SuperTrace};

use super::{
    cells::{Small, Wide, Words, booleans, read},
    states,
};
use crate::Error;

/// With more exceptions than this, all rows are read.
const MOST_EXCEPTIONS: usize = 1 << 20;

/// The exceptions: rows that matter although the thread stays a member.
#[derive(Default)]
pub(super) struct Leaving {
    /// The threads and ticks of waits of length 0.
    at_once: BTreeSet<(u64, i64)>,
    /// For each LWP that carries threads, when it was woken without its thread being known. Sorted.
    woken: BTreeMap<u32, Vec<i64>>,
}

impl Leaving {
    /// Those at ticks of `time`. `None` if there are too many exceptions.
    pub(super) async fn read(trace: &SuperTrace, time: Interval) -> Result<Option<Leaving>, Error> {
        let mut carriers = BTreeSet::new();
        read(trace, &LWPS, &["lwp", "carries_threads"], |batch| {
            let (lwp, carries) = (Small::of(batch, 0), booleans(batch, 1));
            carriers.extend(
                (0..batch.num_rows()).filter(|row| carries.value(*row)).filter_map(|row| lwp.get(row)),
            );
        })
        .await?;
        let waits = trace.row_groups(&THREAD_STATES, states::OF_PLACES)?;
        let wakeups = trace.row_groups(&WAKEUPS, &["ts_tick", "lwp", "thread"])?;
        let find = move || {
            let is_in_time = |groups: &RowGroups, group: usize| {
                let bounds = groups.bounds(group, "ts_tick");
                bounds.is_none_or(|(first, last)| first <= time.to && time.from <= last)
            };
            let may_be_0 = |group: &usize| {
                is_in_time(&waits, *group)
                    && waits.bounds(*group, "dur_tick").is_none_or(|(least, _)| least <= 0)
            };
            let at_once = of_groups(&waits, may_be_0, zero_waits)?;
            let may_wake = |group: &usize| is_in_time(&wakeups, *group);
            let woken = of_groups(&wakeups, may_wake, |batch| without_thread(batch, &carriers))?;
            Ok::<_, sigmund_sql::Error>((at_once, woken))
        };
        let (at_once, unsorted) =
            SpawnedTask::spawn_blocking(find).join().await.map_err(Error::of_task)??;
        if at_once.len() + unsorted.len() > MOST_EXCEPTIONS {
            return Ok(None);
        }
        let mut woken: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        unsorted.into_iter().for_each(|(lwp, tick)| woken.entry(lwp).or_default().push(tick));
        woken.values_mut().for_each(|ticks| ticks.sort_unstable());
        Ok(Some(Leaving { at_once: at_once.into_iter().collect(), woken }))
    }

    /// Whether the search needs a row.
    pub(super) fn is_needed(&self, (thread, interval, stay): &ThreadRow) -> bool {
        if ends_membership(stay.state) || self.at_once.contains(&(*thread, interval.from)) {
            return true;
        }
        let woken = stay.lwp.and_then(|lwp| self.woken.get(&lwp));
        woken.is_some_and(|woken| holds(*interval, woken))
    }
}

/// Whether an interval contains one of these ticks.
fn holds(interval: Interval, ticks: &[i64]) -> bool {
    let first = ticks.partition_point(|tick| *tick < interval.from);
    ticks.get(first).is_some_and(|tick| *tick < interval.to)
}

/// What `of` finds in the row groups that `may` selects; at least one more than [`MOST_EXCEPTIONS`] if there are more.
fn of_groups<T: Send>(
    groups: &RowGroups,
    may: impl Fn(&usize) -> bool + Sync + Send,
    of: impl Fn(&RecordBatch) -> Vec<T> + Sync,
) -> Result<Vec<T>, sigmund_sql::Error> {
    let found = (0..groups.len()).into_par_iter().filter(may).map(|group| Ok(of(&groups.read(group)?)));
    let join = |mut all: Vec<T>, mut more: Vec<T>| {
        if all.len() <= MOST_EXCEPTIONS {
            all.append(&mut more);
        }
        Ok(all)
    };
    found.try_reduce(Vec::new, join)
}

/// Waits of length 0, from columns [`states::OF_PLACES`].
fn zero_waits(batch: &RecordBatch) -> Vec<(u64, i64)> {
    let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let ends = Words::of(batch, 3, |word| ends_membership(states::thread_state(word)));
    let is_zero = |row: &usize| length.get(*row) == Some(0) && ends.get(*row).unwrap_or(true);
    let rows = (0..batch.num_rows()).filter(is_zero);
    rows.map(|row| (thread.or_zero(row) as u64, from.or_zero(row))).collect()
}

/// Wakeups of LWPs that carry threads, where the thread is unknown; from columns `ts_tick`, `lwp` and `thread`.
fn without_thread(batch: &RecordBatch, carriers: &BTreeSet<u32>) -> Vec<(u32, i64)> {
    let (tick, lwp, thread) = (Wide::of(batch, 0), Small::of(batch, 1), Wide::of(batch, 2));
    let rows = (0..batch.num_rows()).filter(|row| thread.get(*row).is_none());
    let woken = rows.filter_map(|row| Some((lwp.get(row)?, tick.or_zero(row))));
    woken.filter(|(lwp, _)| carriers.contains(lwp)).collect()
}

#[cfg(test)]
mod tests {
    use sigmund_measures::ThreadStay;
    use sigmund_model::ThreadState;

    use super::*;

    // thread 7 on LWP 3    active |--------|  blocked |--|  ready ||  blocked of length 0 |  active |-----|
    //                            10       20         20 25       25                       30       30    40
    #[test]
    fn a_wait_counts_and_a_state_after_a_wait_of_length_0_and_one_in_which_its_lwp_is_woken() {
        let row = |state, from, to| {
            let stay = ThreadStay { state, lwp: Some(3), waits_for: None, object: 0, end: None };
            (7_u64, Interval::new(from, to), stay)
        };
        let leaving = Leaving {
            at_once: BTreeSet::from([(7, 30)]),
            woken: BTreeMap::from([(3, vec![10, 41]), (4, vec![26])]),
        };
        use ThreadState::{Active, Blocked, Exited, Ready, Unknown};
        for (state, from, to, is_needed) in [
            (Active, 10, 20, true),
            (Active, 11, 20, false),
            (Active, 5, 10, false),
            (Blocked, 20, 25, true),
            (Ready, 25, 30, false),
            (Active, 30, 40, true),
            (Active, 31, 41, false),
            (Active, 31, 42, true),
            (Exited, 50, 60, true),
            (Unknown, 50, 60, true),
        ] {
            assert_eq!(leaving.is_needed(&row(state, from, to)), is_needed, "{state:?} {from} to {to}");
        }
    }
}
