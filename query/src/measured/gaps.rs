//! The places in the time of a question where events are missing.
//!
//! A row of `losses` has a beginning and an end, and may have the CPU or LWP whose events are missing. Contradictions
//! are summed up: hundreds of contradictions, each an instant, become one row from the first to the last. Such a row
//! affects a part of the time, or some threads, only if a state there is unknown because of it. A loss also affects the time
//! before and after it, as long as a state stays unknown because of it.

use std::{collections::BTreeSet, sync::Arc};

use datafusion::logical_expr::{Expr, ident, lit};
use sigmund_measures::{Gap, History, Interval, Request};
use sigmund_model::tables::{LWP_STATES, THREAD_STATES, Table};
use sigmund_sql::{SuperTrace, columns::Wide};

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
    let is_any = sums == 0 || !times_in(trace, extent, request, &["unknown"]).await?.is_empty();
    let inside = if is_any { inside.len() } else { inside.len() - sums };
    if outside.is_empty() {
        return Ok(inside);
    }
    // Without the kernel's events in a gap, a mounted thread may be on a CPU or not.
    let unknown = times_in(trace, extent, request, &["unknown", "mounted"]).await?;
    let reaches = |gap: &&&Gap| {
        let next = unknown.partition_point(|time| time.to < gap.interval.from);
        unknown.get(next).is_some_and(|time| time.from <= gap.interval.to)
    };
    Ok(inside + outside.iter().filter(reaches).count())
}

/// The times in which a requested thread or LWP is in one of these states, as far as they overlap `time`. Sorted, and apart from
/// each other.
async fn times_in(
    trace: &SuperTrace,
    time: Interval,
    request: &Request,
    states: &[&str],
) -> Result<Vec<Interval>, Error> {
    let threads = request.threads.as_ref();
    let threads = threads.map(|threads| number_in("thread", threads.iter().map(|thread| *thread as i64)));
    let lwps = request.lwps.as_ref();
    let lwps = lwps.map(|lwps| number_in("lwp", lwps.iter().map(|lwp| i64::from(*lwp))));
    let (of_threads, of_lwps) = (request.threads.is_some(), request.lwps.is_some());
    let mut times = Vec::new();
    if of_threads || !of_lwps {
        add_times(trace, (&THREAD_STATES, states), threads, time, &mut times).await?;
    }
    if of_lwps || !of_threads {
        add_times(trace, (&LWP_STATES, states), lwps, time, &mut times).await?;
    }
    times.sort_unstable();
    let mut apart: Vec<Interval> = Vec::new();
    for time in times {
        match apart.last_mut() {
            Some(last) if time.from <= last.to => last.to = last.to.max(time.to),
            _ => apart.push(time),
        }
    }
    Ok(apart)
}

/// Adds the times of a table's rows in these states that overlap `time`.
async fn add_times(
    trace: &SuperTrace,
    (table, states): (&Table, &[&str]),
    is_asked: Option<Expr>,
    time: Interval,
    times: &mut Vec<Interval>,
) -> Result<(), Error> {
    let on_table = Error::on(trace, table.name);
    let ends_later = (ident("ts_tick") + ident("dur_tick")).gt(lit(time.from));
    let is_in_time = ident("ts_tick").lt(lit(time.to)).and(ident("dur_tick").is_null().or(ends_later));
    let is_one =
        ident("state").in_list(states.iter().map(|state| lit(*state)).collect(), false).and(is_in_time);
    let is_one = is_asked.into_iter().fold(is_one, Expr::and);
    let frame = trace.raw(table).await?.filter(is_one);
    let frame = frame.and_then(|frame| frame.select(vec![ident("ts_tick"), ident("dur_tick")]));
    let last = trace.last_tick().map_or(i64::MAX, |tick| tick.0 as i64);
    trace
        .each_batch(table.name, frame.map_err(&on_table)?, |batch| {
            let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
            times.extend((0..batch.num_rows()).map(|row| {
                let from = from.or_zero(row);
                Interval::new(
                    from,
                    length.get(row).map_or(last.max(from), |length| from.saturating_add(length)),
                )
            }));
        })
        .await?;
    Ok(())
}
