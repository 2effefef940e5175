//! Loads events without their parameters.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use datafusion::logical_expr::{ident, lit};
use sigmund_measures::{EventAt, Fault, Interval};
use sigmund_model::{
    tables::EVENTS,
    vocabulary::{KnownEvent, Meaning},
};
use sigmund_sql::SuperTrace;

use super::{
    cells::{Small, Wide, Words, stream},
    reader::Decoded,
    turns,
};
use crate::Error;

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
