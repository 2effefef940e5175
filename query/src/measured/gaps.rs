//! The places in the time of a question where events are missing.
//!
//! A row of `losses` has a beginning and an end, and may have the CPU or LWP whose events are missing. Contradictions
//! are summed up: hundreds of contradictions, each an instant, become one row from the first to the last. Such a row
//! affects a part of the time, or some threads, only if a state there is unknown because of it. A loss also affects the time
//! before and after it, as long as a state stays unknown because of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::datatypes::DataType;
use datafusion::{
    error::Result as PlanResult,
    functions_aggregate::expr_fn::{max, min},
    logical_expr::{Expr, cast, ident, lit, when},
    prelude::DataFrame,
};
use futures::future::BoxFuture;
use sigmund_measures::{Gap, History, Interval, Request};
use sigmund_model::tables::{LWP_STATES, THREAD_STATES, Table};
use sigmund_sql::{
    SuperTrace,
    columns::{Wide, booleans},
};

use super::{MeasureOptions, load, request};
use crate::{Error, Filter, filter::number_in};

/// The number of gaps in the filter's window: places where events are missing that analyses depend on.
///
/// # Errors
/// When the filter gives a time and the rate of the clock is unknown; when the trace cannot be read.
pub fn count_gaps<'a>(trace: &'a SuperTrace, filter: &'a Filter) -> BoxFuture<'a, Result<usize, Error>> {
    Box::pin(async move {
        let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) else { return Ok(0) };
        // Only the window of the filter matters.
        let filter = Filter { from: filter.from, to: filter.to, ..Filter::default() };
        let request = request(trace, "gaps", &filter, None, &MeasureOptions::default())?;
        let extent = Interval::new(first.0 as i64, last.0 as i64);
        let gaps = Arc::new(load::gaps(trace, extent).await?);
        count(trace, &History { extent: Some(extent), gaps, ..History::default() }, &request).await
    })
}

/// The note for readers of an answer that events are missing, with the number of gaps in its time.
pub fn gaps_note(gaps: usize) -> String {
    let plural = if gaps == 1 { "" } else { "s" };
    format!("events are missing in this time ({gaps} gap{plural}): `sigmund check` shows where")
}

/// The number of gaps that concern the request: those in its time, and those next to its time because of which a requested thread
/// or LWP has an unknown state in it.
pub(super) async fn count(trace: &SuperTrace, history: &History, request: &Request) -> Result<usize, Error> {
    let extent = request.extent(history);
    let may_concern = |gap: &&Gap| {
        let is_elsewhere = |asked: &Option<BTreeSet<u32>>, of: Option<u32>| {
            asked.as_ref().zip(of).is_some_and(|(asked, of)| !asked.contains(&of))
        };
        !is_elsewhere(&request.cpus, gap.cpu) && !is_elsewhere(&request.lwps, gap.lwp)
    };
    let (inside, outside): (Vec<&Gap>, Vec<&Gap>) =
        history.gaps.iter().filter(may_concern).partition(|gap| gap.interval.clipped(extent).is_some());
    let sums = inside.iter().filter(|gap| gap.is_sum).count();
    let is_all =
        history.extent.is_none_or(|all| extent == all) && request.threads.is_none() && request.lwps.is_none();
    if is_all || sums == 0 && outside.is_empty() {
        return Ok(inside.len());
    }
    let unknown = Unknown::of(trace, extent, request).await?;
    let inside = if sums == 0 || unknown.is_any { inside.len() } else { inside.len() - sums };
    Ok(inside + outside.iter().filter(|gap| unknown.reaches(gap)).count())
}

/// When the requested threads and LWPs are in a state that may be unknown because of a loss.
#[derive(Debug, Default)]
struct Unknown {
    /// Whether one is in the state `unknown`.
    is_any: bool,
    /// For each LWP, from the begin of the first such state that overlaps the time of the question to the end of the last.
    of_lwps: BTreeMap<u32, Interval>,
    /// The same of states on no known LWP.
    on_none: Option<Interval>,
    of_all: Option<Interval>,
}

impl Unknown {
    async fn of(trace: &SuperTrace, time: Interval, request: &Request) -> Result<Unknown, Error> {
        let threads = request.threads.as_ref();
        let threads = threads.map(|threads| number_in("thread", threads.iter().map(|thread| *thread as i64)));
        let lwps = request.lwps.as_ref();
        let lwps = lwps.map(|lwps| number_in("lwp", lwps.iter().map(|lwp| i64::from(*lwp))));
        let (of_threads, of_lwps) = (request.threads.is_some(), request.lwps.is_some());
        let mut unknown = Unknown::default();
        if of_threads || !of_lwps {
            unknown.add(trace, &THREAD_STATES, threads, time).await?;
        }
        if of_lwps || !of_threads {
            unknown.add(trace, &LWP_STATES, lwps, time).await?;
        }
        Ok(unknown)
    }

    /// Adds the rows of a table.
    async fn add(
        &mut self,
        trace: &SuperTrace,
        table: &Table,
        is_asked: Option<Expr>,
        time: Interval,
    ) -> Result<(), Error> {
        let on_table = Error::on(trace, table.name);
        let last = trace.last_tick().map_or(i64::MAX, |tick| tick.0 as i64);
        let rows = trace.raw(table).await?;
        let rows = is_asked.into_iter().try_fold(rows, DataFrame::filter).map_err(&on_table)?;
        let found = unknown_by_lwp(rows, super::has_kernel_side(trace), time, last).map_err(&on_table)?;
        for batch in found.collect().await.map_err(&on_table)? {
            let (lwp, is_unknown) = (Wide::of(&batch, 0), booleans(&batch, 1));
            let (from, to) = (Wide::of(&batch, 2), Wide::of(&batch, 3));
            for row in 0..batch.num_rows() {
                self.is_any |= is_unknown.value(row);
                let lwp = lwp.get(row).map(|lwp| lwp as u32);
                self.join(lwp, Interval::new(from.or_zero(row), to.or_zero(row)));
            }
        }
        Ok(())
    }

    fn join(&mut self, lwp: Option<u32>, time: Interval) {
        let joined = |before: Option<Interval>| match before {
            Some(before) => Interval::new(before.from.min(time.from), before.to.max(time.to)),
            None => time,
        };
        self.of_all = Some(joined(self.of_all));
        match lwp {
            Some(lwp) => _ = self.of_lwps.insert(lwp, joined(self.of_lwps.get(&lwp).copied())),
            None => self.on_none = Some(joined(self.on_none)),
        }
    }

    /// Whether a state may be unknown because of a gap outside of the question's time. All these states overlap that
    /// time, so the first one reaches a gap before it if any does, and the last one a gap after it.
    fn reaches(&self, gap: &Gap) -> bool {
        let touches = |time: &Interval| time.from <= gap.interval.to && gap.interval.from <= time.to;
        match gap.lwp {
            Some(lwp) => self.of_lwps.get(&lwp).into_iter().chain(&self.on_none).any(touches),
            None => self.of_all.iter().any(touches),
        }
    }
}

/// For each LWP, and for states that are `unknown` and for others: when the first begins and the last ends that overlaps
/// `time`. Columns: lwp, whether they are `unknown`, begin, end.
fn unknown_by_lwp(
    states: DataFrame,
    has_kernel_side: bool,
    time: Interval,
    last: i64,
) -> PlanResult<DataFrame> {
    // Where the kernel's events are missing, a mounted thread may be on a CPU or not. Without a kernel side, no loss is
    // the reason for that.
    let of_losses: &[&str] = if has_kernel_side { &["unknown", "mounted"] } else { &["unknown"] };
    let is_one = ident("state").in_list(of_losses.iter().map(|state| lit(*state)).collect(), false);
    let end = when(ident("dur_tick").is_null(), lit(last)).otherwise(ident("ts_tick") + ident("dur_tick"))?;
    let is_in_time = ident("ts_tick").lt(lit(time.to)).and(end.clone().gt(lit(time.from)));
    let key = vec![cast(ident("lwp"), DataType::Int64), ident("state").eq(lit("unknown"))];
    states.filter(is_one.and(is_in_time))?.aggregate(key, vec![min(ident("ts_tick")), max(end)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_an_lwp_concerns_states_on_that_lwp_and_on_no_known_one() {
        let gap = |lwp, from, to| Gap { interval: Interval::new(from, to), cpu: None, lwp, is_sum: false };
        let mut unknown = Unknown::default();
        unknown.join(Some(1), Interval::new(50, 200));
        unknown.join(Some(1), Interval::new(90, 120));
        unknown.join(Some(2), Interval::new(90, 300));
        for (lwp, from, to, expected) in [
            (None, 10, 20, false),
            (None, 10, 50, true),
            (Some(1), 10, 60, true),
            (Some(2), 10, 60, false),
            (Some(3), 10, 90, false),
            (Some(1), 250, 260, false),
            (Some(2), 250, 260, true),
        ] {
            assert_eq!(unknown.reaches(&gap(lwp, from, to)), expected, "{lwp:?} {from} to {to}");
        }
        unknown.join(None, Interval::new(80, 110));
        assert!(unknown.reaches(&gap(Some(3), 10, 85)));
    }
}
