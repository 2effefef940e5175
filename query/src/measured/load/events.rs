//! Loads events without their parameters, and the events that two selectors select.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use datafusion::logical_expr::{ident, lit};
use futures::future::try_join_all;
use sigmund_measures::{Context, EventAt, Fault, Interval, Mark};
use sigmund_model::{
    tables::EVENTS,
    vocabulary::{KnownEvent, Meaning},
};
use sigmund_sql::SuperTrace;

use super::{
    cells::{Small, Wide, Words, booleans, stream},
    reader::Decoded,
    turns,
};
use crate::{Error, Selector, reactivity::plan};

/// Columns of `events`.
pub(super) const OF_TURNS: &[&str] = &["ts_tick", "lwp", "cpu", "thread"];

/// Decodes these columns. Keeps only the rows at which a CPU or an LWP changes to another LWP or user thread.
pub(super) fn turns(batch: &RecordBatch) -> Decoded<EventAt> {
    let (tick, lwp) = (Wide::of(batch, 0), Small::of(batch, 1));
    let (cpu, thread) = (Small::of(batch, 2), Wide::of(batch, 3));
    let event = |row| EventAt::new(tick.or_zero(row), lwp.get(row), cpu.get(row), thread.thread(row));
    let events: Vec<EventAt> = (0..batch.num_rows()).map(event).collect();
    let turns = turns::turns(&events);
    let rows = turns.into_iter().map(|row| events[row]).collect();
    let latest = events.iter().map(|event| event.tick()).max();
    Decoded { rows, words: Default::default(), latest }
}

/// The page faults in the window.
pub(super) async fn faults(trace: &SuperTrace, window: Option<Interval>) -> Result<Vec<Fault>, Error> {
    let mut faults = Vec::new();
    let on_table = Error::on(trace, EVENTS.name);
    let is_user = |meaning| match meaning {
        Meaning::UserFault => Some(true),
        Meaning::KernelFault => Some(false),
        _ => None,
    };
    let meant = trace.event_types().iter().filter(|declared| declared.events > 0).filter_map(|declared| {
        let is_user = is_user(KnownEvent::of(&declared.ty)?.meaning())?;
        Some((declared.ty.name.as_str(), is_user))
    });
    let names: BTreeMap<&str, bool> = meant.collect();
    if names.is_empty() {
        return Ok(faults);
    }
    let is_fault = ident("name").in_list(names.keys().map(|name| lit(*name)).collect(), false);
    let frame = in_window(trace.raw(&EVENTS).await?, window).map_err(&on_table)?;
    let frame = frame.filter(is_fault).map_err(&on_table)?;
    let frame = frame.select_columns(&["ts_tick", "lwp", "cpu", "thread", "name"]).map_err(&on_table)?;
    stream(trace, EVENTS.name, frame, |batch| {
        let (tick, lwp) = (Wide::of(batch, 0), Small::of(batch, 1));
        let (cpu, thread) = (Small::of(batch, 2), Wide::of(batch, 3));
        let is_user = Words::of(batch, 4, |name| names.get(name).copied());
        for row in 0..batch.num_rows() {
            if let Some(Some(is_user)) = is_user.get(row) {
                let at = EventAt::new(tick.or_zero(row), lwp.get(row), cpu.get(row), thread.thread(row));
                faults.push(Fault { at, is_user });
            }
        }
    })
    .await?;
    Ok(faults)
}

fn in_window(
    frame: datafusion::prelude::DataFrame,
    window: Option<Interval>,
) -> datafusion::error::Result<datafusion::prelude::DataFrame> {
    let Some(Interval { from, to }) = window else { return Ok(frame) };
    let frame = if from > i64::MIN { frame.filter(ident("ts_tick").gt_eq(lit(from)))? } else { frame };
    if to < i64::MAX { frame.filter(ident("ts_tick").lt(lit(to))) } else { Ok(frame) }
}

/// The events in the window that FROM or TO selects, as parts of the window in time order.
pub(super) async fn marks(
    trace: &SuperTrace,
    pair: (&Selector, &Selector),
    window: Option<Interval>,
) -> Result<Vec<Vec<Mark>>, Error> {
    let groups = trace.row_groups(&EVENTS, &["ts_tick"])?;
    let firsts = (0..groups.len()).filter_map(|group| Some(groups.bounds(group, "ts_tick")?.0));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = parts(window.unwrap_or(Interval::ALL), firsts.collect(), cpus);
    // A plan that keeps the order of rows runs on one CPU. So there is one plan for each part.
    try_join_all(parts.into_iter().map(|part| marks_of(trace, pair, Some(part)))).await
}

/// Cuts the window into at most `most` parts, at beginnings of row groups. `firsts` has the first tick of each row
/// group.
fn parts(window: Interval, mut firsts: Vec<i64>, most: usize) -> Vec<Interval> {
    firsts.retain(|first| window.from < *first && *first < window.to);
    let count = most.min(firsts.len() / LEAST_GROUPS).max(1);
    let mut borders: Vec<i64> = (1..count).map(|part| firsts[part * firsts.len() / count]).collect();
    borders.dedup();
    if !borders.is_sorted() {
        return vec![window];
    }
    let froms = std::iter::once(window.from).chain(borders.iter().copied());
    let tos = borders.iter().copied().chain([window.to]);
    froms.zip(tos).map(|(from, to)| Interval { from, to }).collect()
}

/// A part has at least this many row groups, because the row groups at its ends are read twice.
const LEAST_GROUPS: usize = 4;

/// The events that FROM or TO selects, in the window.
async fn marks_of(
    trace: &SuperTrace,
    (from, to): (&Selector, &Selector),
    window: Option<Interval>,
) -> Result<Vec<Mark>, Error> {
    let mut marks = Vec::new();
    let on_table = Error::on(trace, EVENTS.name);
    let (from, to) = (plan::selects(trace, from).await?, plan::selects(trace, to).await?);
    let frame = in_window(trace.raw(&EVENTS).await?, window).map_err(&on_table)?;
    let mut columns = ["ts_tick", "cpu", "lwp", "thread"].map(ident).to_vec();
    columns.extend([from.clone().is_true().alias("is_from"), to.clone().is_true().alias("is_to")]);
    columns.extend(["context", "target_lwp", "target_thread"].map(ident));
    let frame = frame.filter(from.or(to)).and_then(|frame| frame.select(columns)).map_err(&on_table)?;
    stream(trace, EVENTS.name, frame, |batch| {
        let (tick, cpu) = (Wide::of(batch, 0), Small::of(batch, 1));
        let (lwp, thread) = (Small::of(batch, 2), Wide::of(batch, 3));
        let (is_from, is_to) = (booleans(batch, 4), booleans(batch, 5));
        let context = Words::of(batch, 6, Context::from_name);
        let (target_lwp, target_thread) = (Small::of(batch, 7), Wide::of(batch, 8));
        for row in 0..batch.num_rows() {
            marks.push(Mark {
                tick: tick.or_zero(row),
                cpu: cpu.get(row),
                context: context.get(row).unwrap_or(Context::Unknown),
                lwp: lwp.get(row),
                thread: thread.thread(row),
                target_lwp: target_lwp.get(row),
                target_thread: target_thread.thread(row),
                // All events of a selector have the same key: it has one name, and one value of one field.
                key: 0,
                is_from: is_from.value(row),
                is_to: is_to.value(row),
            });
        }
    })
    .await?;
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_window_without_gaps_and_overlaps() {
        for (window, firsts, most) in [
            (Interval::ALL, vec![], 8),
            (Interval::ALL, (0..64).collect(), 8),
            (Interval::ALL, (0..64).map(|tick| tick / 30).collect(), 8),
            (Interval::ALL, (0..64).rev().collect(), 8),
            (Interval::new(10, 50), (0..64).collect(), 3),
            (Interval::new(10, 10), (0..64).collect(), 3),
            (Interval::ALL, vec![i64::MIN, i64::MIN, 3, 3, 5, 6, 7, 8, i64::MAX], 2),
        ] {
            let parts = parts(window, firsts, most);
            assert!(parts.len() <= most);
            assert_eq!((parts[0].from, parts[parts.len() - 1].to), (window.from, window.to));
            assert!(
                parts.windows(2).all(|two| two[0].to == two[1].from && two[0].from < two[0].to),
                "{parts:?}"
            );
        }
        assert_eq!(parts(Interval::ALL, (0..64).collect(), 8).len(), 8);
        assert_eq!(parts(Interval::ALL, (0..64).collect(), 100).len(), 16);
    }
}
