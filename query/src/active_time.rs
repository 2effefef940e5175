//! How long each user thread executed: the sum of its active intervals. Time in which the thread was mounted but not on
//! a CPU does not count. What a thread waited for is in the table `thread_states`.

use std::collections::BTreeMap;

use arrow::{
    array::AsArray,
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    error::Result as PlanResult,
    functions::core::expr_fn::{greatest, least},
    functions_aggregate::expr_fn::sum,
    logical_expr::{Expr, cast, ident, lit},
    prelude::DataFrame,
};
use sigmund_model::{Thread, Ticks, tables::ACTIVE};
use sigmund_sql::SuperTrace;

use crate::{
    Error, Filter,
    filter::{Window, number_in},
};

/// The active time of one user thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveTime {
    /// The thread.
    pub thread: Thread,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its active time, within the filter's window and on its LWPs and CPUs.
    pub active: Ticks,
}

/// The active time of the threads that the filter names, sorted by thread number. If the filter names no thread: of all
/// threads.
///
/// Of an interval that is partly outside the window, the part inside counts. A thread that exists but did not execute
/// in the window has 0. A thread that does not exist is left out.
///
/// # Errors
/// When the filter selects events or a level, which do not apply to active time; when the trace cannot be read.
pub async fn active_time(trace: &SuperTrace, filter: &Filter) -> Result<Vec<ActiveTime>, Error> {
    if !filter.events.is_empty() || filter.level.is_some() {
        return Err(Error::argument(
            "active time is of threads, not of events: expected no event and no level filter",
        ));
    }
    let on_table = Error::on(trace, ACTIVE.name);
    let threads = filter.thread_numbers(trace)?;
    let mut conditions = filter.place(trace)?;
    if let Some(threads) = &threads {
        conditions.push(number_in("thread", threads.iter().map(|t| t.0 as i64)));
    }
    let sums = plan(trace.raw(&ACTIVE).await?, conditions, filter.window(trace)?).map_err(&on_table)?;

    let named;
    let names = match &threads {
        Some(threads) => {
            named = trace.threads_among(threads).await?;
            &named
        }
        None => trace.threads()?,
    };
    let mut active: BTreeMap<Thread, Ticks> = names.iter().map(|(thread, _)| (thread, Ticks(0))).collect();
    for batch in sums.collect().await.map_err(&on_table)? {
        let (threads, ticks) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1));
        let ticks = ticks.as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            active.insert(Thread(threads.value(row) as u64), Ticks(ticks.value(row) as u64));
        }
    }
    let row = |(thread, active)| {
        let name = names.name(thread).map(String::from);
        ActiveTime { thread, name, active }
    };
    Ok(active.into_iter().map(row).collect())
}

/// `SELECT thread, sum(end - start) FROM active WHERE … GROUP BY thread`; start and end are clipped to the window.
fn plan(active: DataFrame, conditions: Vec<Expr>, window: Window) -> PlanResult<DataFrame> {
    let (mut start, mut end) = (ident("ts_tick"), ident("ts_tick") + ident("dur_tick"));
    let mut active = active;
    for condition in conditions {
        active = active.filter(condition)?;
    }
    if let Some(from) = window.from {
        active = active.filter(end.clone().gt(lit(from)))?;
        start = greatest(vec![start, lit(from)]);
    }
    if let Some(to) = window.to {
        active = active.filter(ident("ts_tick").lt(lit(to)))?;
        end = least(vec![end, lit(to)]);
    }
    active.aggregate(vec![ident("thread")], vec![cast(sum(end - start), DataType::Int64)])
}
