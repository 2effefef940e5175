//! Opens the tables `syscalls`, `interrupts`, `spans`, `locks`, `wakeups` and `counters`.

use std::collections::BTreeMap;

use datafusion::logical_expr::{Expr, ident, lit};
use futures::StreamExt;
use sigmund_model::{
    Level,
    tables::{COUNTERS, INTERRUPTS, LOCKS, SPANS, SYSCALLS, Table, WAKEUPS},
};
use sigmund_query::{Filter, Window, number_in};
use sigmund_sql::SuperTrace;

use super::{
    by_begin::{ByBegin, RowSource, Selection, has_column},
    interval_readers::{CounterReader, HoldReader, SliceReader, WakeupReader},
    rows::QueueNumber,
};
use crate::Error;

/// The sources of all tables of intervals that a filter selects.
pub(super) async fn intervals(
    trace: &SuperTrace,
    filter: &Filter,
    window: &Window,
) -> Result<Vec<Box<dyn RowSource>>, Error> {
    let tables = IntervalTables { trace, filter, window };
    let left_out = super::left_out_tables(trace);
    let is_in_trace = |table: &Table| !left_out.iter().any(|left_out| left_out.name == table.name);
    let mut sources: Vec<Box<dyn RowSource>> = Vec::new();
    let (kernel, user) = (filter.level != Some(Level::User), filter.level != Some(Level::Kern));
    for (table, is_selected) in [(&SYSCALLS, kernel), (&INTERRUPTS, kernel), (&SPANS, user)] {
        if is_selected && is_in_trace(table) {
            sources.push(tables.slices(table).await?);
        }
    }
    if user && is_in_trace(&LOCKS) {
        sources.push(tables.holds().await?);
    }
    if is_in_trace(&WAKEUPS) {
        sources.push(tables.wakeups().await?);
    }
    if is_in_trace(&COUNTERS) {
        sources.push(tables.counters().await?);
    }
    Ok(sources)
}

/// Opens the tables of intervals.
struct IntervalTables<'a> {
    trace: &'a SuperTrace,
    filter: &'a Filter,
    window: &'a Window,
}

impl IntervalTables<'_> {
    async fn slices(&self, table: &'static Table) -> Result<Box<dyn RowSource>, Error> {
        let columns = match table.name {
            "syscalls" => ["lwp", "name", "number", "end_reason"].as_slice(),
            "interrupts" => ["cpu", "name", "number", "end_reason", "kind", "depth"].as_slice(),
            _ => ["thread", "name", "lwp", "end_reason", "kind", "depth"].as_slice(),
        };
        let selection = self.selection(table, (ident("ts_tick"), ident("dur_tick")), columns)?;
        let reader = SliceReader::new(table.name, *self.window);
        Ok(Box::new(ByBegin::open(self.trace, selection, reader).await?))
    }

    async fn holds(&self) -> Result<Box<dyn RowSource>, Error> {
        // A row with a hold has a wait, which may be 0. The hold begins when the wait ends.
        let taken = ident("ts_tick") + ident("wait_tick");
        let columns = ["thread", "lwp", "object", "kind", "end_reason"];
        let mut selection = self.selection(&LOCKS, (taken, ident("hold_tick")), &columns)?;
        selection.conditions.push(ident("hold_tick").is_not_null());
        Ok(Box::new(ByBegin::open(self.trace, selection, HoldReader { window: *self.window }).await?))
    }

    async fn wakeups(&self) -> Result<Box<dyn RowSource>, Error> {
        let columns = ["level", "context", "waker_lwp", "waker_thread", "lwp", "thread", "cpu"];
        let mut selection = self.selection(&WAKEUPS, (ident("ts_tick"), ident("latency_tick")), &columns)?;
        if let Some(level) = self.filter.level {
            selection.conditions.push(ident("level").eq(lit(level.name())));
        }
        Ok(Box::new(ByBegin::open(self.trace, selection, WakeupReader { window: *self.window }).await?))
    }

    async fn counters(&self) -> Result<Box<dyn RowSource>, Error> {
        let no_length = lit(0i64);
        let columns = ["kind", "cpu", "pid", "value"];
        let mut selection = self.selection(&COUNTERS, (ident("ts_tick"), no_length), &columns)?;
        // The replay leaves out counters of CPUs and processes that are not actors.
        selection.conditions.clear();
        match self.filter.level {
            Some(Level::Kern) => selection.conditions.push(ident("kind").eq(lit("run-queue"))),
            Some(Level::User) => selection.conditions.push(ident("kind").eq(lit("ready-queue"))),
            None => {}
        }
        Ok(Box::new(ByBegin::open(self.trace, selection, CounterReader).await?))
    }

    /// Selects rows by the filter's LWPs, user threads and CPUs, if the table has columns for them.
    fn selection(
        &self,
        table: &'static Table,
        interval: (Expr, Expr),
        columns: &[&str],
    ) -> Result<Selection<'_>, Error> {
        let in_any = |names: &[&str], numbers: Vec<i64>| {
            let present = names.iter().filter(|name| has_column(table, name));
            present.map(|name| number_in(name, numbers.iter().copied())).reduce(Expr::or)
        };
        let mut conditions = Vec::new();
        if let Some(lwps) = self.filter.selected_lwps(self.trace)? {
            let lwps = lwps.numbers().iter().map(|lwp| lwp.0.into()).collect();
            conditions.extend(in_any(&["lwp", "waker_lwp"], lwps));
        }
        if let Some(threads) = self.filter.thread_numbers(self.trace)? {
            let threads = threads.iter().map(|thread| thread.0 as i64).collect();
            conditions.extend(in_any(&["thread", "waker_thread"], threads));
        }
        if !self.filter.cpus.is_empty() {
            let cpus = self.filter.cpus.iter().map(|cpu| cpu.0.into()).collect();
            conditions.extend(in_any(&["cpu"], cpus));
        }
        let columns = columns.iter().map(|name| ident(*name)).collect();
        Ok(Selection { table, conditions, interval, columns, window: self.window })
    }
}

/// The last values of all counters before a window.
pub(super) async fn counters_before(
    trace: &SuperTrace,
    filter: &Filter,
    window: &Window,
) -> Result<BTreeMap<QueueNumber, i64>, Error> {
    let mut values = BTreeMap::new();
    let (Some(first), Some(from)) = (trace.first_tick(), window.from) else { return Ok(values) };
    if from <= first.0 as i64 {
        return Ok(values);
    }
    let wrong = |e| Error::from(trace.error(COUNTERS.name, e));
    let columns = ["ts_tick", "dur_tick", "kind", "cpu", "pid", "value"];
    let columns = columns.map(|name| if name == "dur_tick" { lit(0i64).alias(name) } else { ident(name) });
    let rows = trace.raw(&COUNTERS).await?.filter(ident("ts_tick").lt(lit(from))).map_err(wrong)?;
    let rows = rows.select(columns.to_vec()).map_err(wrong)?;
    let mut batches = trace.in_file_order(rows).execute_stream().await.map_err(wrong)?;
    while let Some(batch) = batches.next().await.transpose().map_err(wrong)? {
        let rows = (0..batch.num_rows()).filter_map(CounterReader::rows(&batch));
        values.extend(rows.map(|row| (row.queue, row.value)));
    }
    values.retain(|queue, _| match queue {
        QueueNumber::Run(_) => filter.level != Some(Level::User),
        QueueNumber::Ready(_) => filter.level != Some(Level::Kern),
    });
    Ok(values)
}
