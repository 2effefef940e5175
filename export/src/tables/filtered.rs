//! A plan of the rows of a table that match a filter.

use arrow::datatypes::DataType;
use datafusion::{
    common::TableReference,
    error::Result as PlanResult,
    logical_expr::{Expr, cast, ident, lit},
    prelude::DataFrame,
};
use sigmund_model::tables::{EVENTS, THREAD_STATES, Table, WAKEUPS};
use sigmund_query::{Filter, Window, number_in};
use sigmund_sql::SuperTrace;

use super::TableFormat;
use crate::Error;

pub(super) async fn plan(
    trace: &SuperTrace,
    table: &'static Table,
    filter: &Filter,
    format: TableFormat,
) -> Result<DataFrame, Error> {
    let conditions = if table.name == EVENTS.name {
        filter.events_where(trace)?
    } else {
        conditions(trace, table, filter).await?
    };
    let view = trace.session().table(TableReference::bare(table.name)).await;
    let plan =
        view.and_then(|view| select(view, conditions, format)).map_err(|e| trace.error(table.name, e))?;
    Ok(trace.in_file_order(plan))
}

fn select(view: DataFrame, conditions: Vec<Expr>, format: TableFormat) -> PlanResult<DataFrame> {
    let rows = conditions.into_iter().try_fold(view, |rows, condition| rows.filter(condition))?;
    if format != TableFormat::Arrow {
        return Ok(rows);
    }
    // An IPC file has one dictionary per column, but each part of a table has its own: dictionaries are decoded.
    let columns = rows.schema().fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, words) => {
            cast(ident(field.name()), words.as_ref().clone()).alias(field.name())
        }
        _ => ident(field.name()),
    });
    let columns: Vec<Expr> = columns.collect();
    rows.select(columns)
}

/// Conditions on a table that is not `events`.
async fn conditions(trace: &SuperTrace, table: &Table, filter: &Filter) -> Result<Vec<Expr>, Error> {
    let has = |column: &str| table.columns.iter().any(|c| c.name == column);
    let need = |column: &str, asked: bool| match asked && !has(column) {
        true => Err(Error::argument(format!(
            "the table `{}` has no column `{column}`, so it cannot be filtered by it",
            table.name
        ))),
        false => Ok(asked),
    };
    if !filter.events.is_empty() || filter.level.is_some() {
        let message =
            format!("the table `{}` has no events: expected no event and no level filter", table.name);
        return Err(Error::argument(message));
    }
    let mut conditions = Vec::new();
    need("lwp", !filter.lwps.is_empty())?;
    need("cpu", !filter.cpus.is_empty())?;
    let threads = if has("pid") {
        conditions.extend(filter.place_of_threads(trace)?);
        let pids = filter.process_numbers(trace)?;
        conditions.extend(pids.map(|pids| number_in("pid", pids.iter().map(|pid| pid.0.into()))));
        filter.thread_numbers(trace)?
    } else if table.name == THREAD_STATES.name {
        conditions.extend(filter.place_of_threads(trace)?);
        filter.threads_of_processes(trace).await?
    } else if table.name == WAKEUPS.name && !filter.processes.is_empty() {
        // For the unparking of a user thread, `lwp` is the waker's LWP.
        conditions.extend(filter.place_of_threads(trace)?);
        let lwps = filter.selected_lwps(trace)?.map(|lwps| lwps.numbers()).unwrap_or_default();
        let threads = filter.threads_of_processes(trace).await?.unwrap_or_default();
        let is_lwp = |column| number_in(column, lwps.iter().map(|lwp| lwp.0.into()));
        let is_thread = number_in("thread", threads.iter().map(|thread| thread.0 as i64));
        conditions.push(is_lwp("lwp").or(is_lwp("waker_lwp")).or(is_thread));
        filter.thread_numbers(trace)?
    } else if !has("ts_tick") {
        // Without a tick, it cannot be determined which of the LWPs with a reused number is meant.
        need("lwp", !filter.processes.is_empty())?;
        let lwps = filter.selected_lwps(trace)?.map(|lwps| lwps.numbers());
        conditions.extend(lwps.map(|lwps| number_in("lwp", lwps.iter().map(|lwp| lwp.0.into()))));
        conditions.extend(Filter { cpus: filter.cpus.clone(), ..Filter::default() }.place(trace)?);
        filter.thread_numbers(trace)?
    } else {
        need("lwp", !filter.processes.is_empty())?;
        conditions.extend(filter.place(trace)?);
        filter.thread_numbers(trace)?
    };
    if let Some(threads) = threads {
        need("thread", true)?;
        conditions.push(number_in("thread", threads.iter().map(|thread| thread.0 as i64)));
    }
    let window = filter.window(trace)?;
    if need("ts_tick", window != Window::default())? {
        conditions.extend(overlaps(window, has("dur_tick")));
    }
    Ok(conditions)
}

/// Conditions that an interval, which begins at `ts_tick`, overlaps the window.
fn overlaps(window: Window, has_length: bool) -> Vec<Expr> {
    if !has_length {
        return window.holds("ts_tick");
    }
    let end = ident("ts_tick") + ident("dur_tick");
    let from = window.from.map(|from| end.clone().is_null().or(end.gt_eq(lit(from))));
    let to = window.to.map(|to| ident("ts_tick").lt_eq(lit(to)));
    from.into_iter().chain(to).collect()
}
