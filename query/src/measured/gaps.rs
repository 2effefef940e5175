//! The places in the time of a question where events are missing.
//!
//! A row of `losses` has a beginning and an end, and may have the CPU or LWP whose events are missing. Contradictions
//! are summed up: hundreds of contradictions, each an instant, become one row from the first to the last. Such a row
//! affects a part of the time, or some threads, only if a state there is unknown because of it.

use std::sync::Arc;

use datafusion::{
    logical_expr::{Expr, ident, lit},
    prelude::DataFrame,
};
use sigmund_measures::{Gap, History, Interval, Request};
use sigmund_model::tables::{LWP_STATES, THREAD_STATES, Table};
use sigmund_sql::SuperTrace;

use super::{MeasureOptions, load, request};
use crate::{Error, Filter, filter::number_in};

/// The number of gaps in the filter's window: places where events are missing that analyses depend on.
///
/// # Errors
/// When the filter gives a time and the rate of the clock is unknown; when the trace cannot be read.
pub async fn count_gaps(trace: &SuperTrace, filter: &Filter) -> Result<usize, Error> {
    let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) else { return Ok(0) };
    // Only the window of the filter matters.
    let filter = Filter { from: filter.from, to: filter.to, ..Filter::default() };
    let request = request(trace, "gaps", &filter, None, &MeasureOptions::default())?;
    let extent = Interval::new(first.0 as i64, last.0 as i64);
    let gaps = Arc::new(load::gaps(trace, extent).await?);
    count(trace, &History { extent: Some(extent), gaps, ..History::default() }, &request).await
}

/// The note for readers of an answer that events are missing, with the number of gaps in its time.
pub fn gaps_note(gaps: usize) -> String {
    let plural = if gaps == 1 { "" } else { "s" };
    format!("events are missing in this time ({gaps} gap{plural}): `sigmund check` shows where")
}

/// The number of gaps that concern the request.
pub(super) async fn count(trace: &SuperTrace, history: &History, request: &Request) -> Result<usize, Error> {
    let extent = request.extent(history);
    let is_of_request = |gap: &&Gap| {
        let is_elsewhere = |asked: &Option<std::collections::BTreeSet<u32>>, of: Option<u32>| {
            asked.as_ref().zip(of).is_some_and(|(asked, of)| !asked.contains(&of))
        };
        gap.interval.clipped(extent).is_some()
            && !is_elsewhere(&request.cpus, gap.cpu)
            && !is_elsewhere(&request.lwps, gap.lwp)
    };
    let (sums, places): (Vec<&Gap>, Vec<&Gap>) =
        history.gaps.iter().filter(is_of_request).partition(|gap| gap.is_sum);
    let is_all =
        history.extent.is_none_or(|all| extent == all) && request.threads.is_none() && request.lwps.is_none();
    if sums.is_empty() || !is_all && !is_unknown(trace, extent, request).await? {
        return Ok(places.len());
    }
    Ok(places.len() + sums.len())
}

/// Whether a state of the requested threads or LWPs is unknown in this time.
async fn is_unknown(trace: &SuperTrace, time: Interval, request: &Request) -> Result<bool, Error> {
    let threads = request.threads.as_ref();
    let threads = threads.map(|threads| number_in("thread", threads.iter().map(|thread| *thread as i64)));
    let lwps = request.lwps.as_ref();
    let lwps = lwps.map(|lwps| number_in("lwp", lwps.iter().map(|lwp| i64::from(*lwp))));
    let (of_threads, of_lwps) = (request.threads.is_some(), request.lwps.is_some());
    if (of_threads || !of_lwps) && has_unknown(trace, &THREAD_STATES, threads, time).await? {
        return Ok(true);
    }
    Ok((of_lwps || !of_threads) && has_unknown(trace, &LWP_STATES, lwps, time).await?)
}

async fn has_unknown(
    trace: &SuperTrace,
    table: &Table,
    is_asked: Option<Expr>,
    time: Interval,
) -> Result<bool, Error> {
    let on_table = Error::on(trace, table.name);
    let is_in_time =
        ident("ts_tick").lt(lit(time.to)).and((ident("ts_tick") + ident("dur_tick")).gt(lit(time.from)));
    let is_one = ident("state").eq(lit("unknown")).and(is_in_time);
    let is_one = is_asked.into_iter().fold(is_one, Expr::and);
    let first = |states: DataFrame| states.filter(is_one)?.limit(0, Some(1));
    let found = first(trace.raw(table).await?).map_err(&on_table)?.count().await.map_err(&on_table)?;
    Ok(found > 0)
}
