//! A filter as expressions on the columns of `events` and `active`.

use std::collections::BTreeSet;

use arrow::{array::AsArray, datatypes::Int64Type};
use datafusion::logical_expr::{Expr, ident, in_list, lit};
use futures::future::BoxFuture;
use sigmund_model::{Pid, Thread, tables::THREADS};
use sigmund_sql::SuperTrace;

use super::{Numbered, Reference, known::covered, one_of::is_one_of, reference::resolve_all};
use crate::{Error, Filter};

/// The ticks that a query covers: `from <= tick <= to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first tick included.
    pub from: Option<i64>,
    /// The last tick included.
    pub to: Option<i64>,
}

impl Window {
    /// The conditions on a column that holds an instant.
    pub fn holds(&self, column: &str) -> Vec<Expr> {
        let from = self.from.map(|from| ident(column).gt_eq(lit(from)));
        let to = self.to.map(|to| ident(column).lt_eq(lit(to)));
        from.into_iter().chain(to).collect()
    }
}

impl Filter {
    /// The window of the filter, in ticks.
    ///
    /// # Errors
    /// When the filter gives a time and the rate of the clock is unknown; when the window ends before it begins.
    pub fn window(&self, trace: &SuperTrace) -> Result<Window, Error> {
        let tick = |instant: Option<super::Instant>| {
            instant
                .map(|i| i.resolve(trace))
                .transpose()
                .map(|t| t.map(|t| i64::try_from(t.0).unwrap_or(i64::MAX)))
        };
        let window = Window { from: tick(self.from)?, to: tick(self.to)? };
        if let (Window { from: Some(first), to: Some(last) }, Some(from), Some(to)) =
            (window, self.from, self.to)
            && first > last
        {
            let ticks = format!("tick {first} is after tick {last}");
            let covered = covered(trace).map_or(String::new(), |covered| format!("; {covered}"));
            let message =
                format!("--from {from} --to {to}: expected an end after the beginning, but {ticks}{covered}");
            return Err(Error::argument(message));
        }
        Ok(window)
    }

    /// The threads that the filter names; `None` if it names none.
    ///
    /// # Errors
    /// When the filter has thread names and those of the trace cannot be read.
    pub fn thread_numbers(&self, trace: &SuperTrace) -> Result<Option<Vec<Thread>>, Error> {
        Ok(numbers(&self.threads, trace)?.map(|threads| threads.into_iter().collect()))
    }

    /// The conditions on the columns `lwp` and `cpu` of a table that has `ts_tick`. The LWPs are those that the filter
    /// names, and those of the processes that it names.
    ///
    /// # Errors
    /// When the filter has names and those of the trace cannot be read.
    pub fn place(&self, trace: &SuperTrace) -> Result<Vec<Expr>, Error> {
        Ok(self.selected_lwps(trace)?.map(|lwps| lwps.condition()).into_iter().chain(self.cpu()).collect())
    }

    /// As [`place`](Self::place), for tables of user threads. A user thread has no LWP while it is blocked, so the
    /// filter's processes do not restrict the LWPs here.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn place_of_threads(&self, trace: &SuperTrace) -> Result<Vec<Expr>, Error> {
        let named = Filter { lwps: self.lwps.clone(), cpus: self.cpus.clone(), ..Filter::default() };
        named.place(trace)
    }

    fn cpu(&self) -> Option<Expr> {
        let numbers = || self.cpus.iter().map(|cpu| i64::from(cpu.0));
        (!self.cpus.is_empty()).then(|| number_in("cpu", numbers()))
    }

    /// The processes that the filter names; `None` if it names none.
    ///
    /// # Errors
    /// When the filter has names of processes and those of the trace cannot be read.
    pub fn process_numbers(&self, trace: &SuperTrace) -> Result<Option<BTreeSet<Pid>>, Error> {
        numbers(&self.processes, trace)
    }

    /// The user threads that the filter selects by its threads and processes. With both, a thread has to match both.
    /// `None` if the filter names neither.
    ///
    /// # Errors
    /// When the filter has names and those of the trace cannot be read.
    pub fn threads_of_processes<'a>(
        &'a self,
        trace: &'a SuperTrace,
    ) -> BoxFuture<'a, Result<Option<Vec<Thread>>, Error>> {
        Box::pin(async move {
            let named = self.thread_numbers(trace)?;
            let Some(processes) = self.process_numbers(trace)? else { return Ok(named) };
            let on_table = Error::on(trace, THREADS.name);
            let of_processes = number_in("pid", processes.iter().map(|pid| pid.0.into()));
            let rows = trace.raw(&THREADS).await?.filter(of_processes);
            let rows = rows.and_then(|rows| rows.select(vec![ident("thread")])).map_err(&on_table)?;
            let mut threads = Vec::new();
            for batch in rows.collect().await.map_err(&on_table)? {
                let numbers = batch.column(0).as_primitive::<Int64Type>().values();
                threads.extend(numbers.iter().map(|number| Thread(*number as u64)));
            }
            threads.sort_unstable();
            threads.dedup();
            if let Some(named) = named {
                threads.retain(|thread| named.binary_search(thread).is_ok());
            }
            Ok(Some(threads))
        })
    }

    /// All conditions on a row of `events`.
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn events_where(&self, trace: &SuperTrace) -> Result<Vec<Expr>, Error> {
        let mut conditions = self.window(trace)?.holds("ts_tick");
        conditions.extend(self.place(trace)?);
        if let Some(level) = self.level {
            conditions.push(ident("level").eq(lit(level.name())));
        }
        if let Some(threads) = self.thread_numbers(trace)? {
            let is = |column| number_in(column, threads.iter().map(|t| t.0 as i64));
            conditions.push(is("thread").or(is("target_thread")));
        }
        if !self.events.is_empty() {
            let mut names: Vec<&str> = trace.event_types().iter().map(|e| e.ty.name.as_str()).collect();
            names.sort();
            names.dedup();
            names.retain(|name| self.events.iter().any(|pattern| pattern.fits(name)));
            conditions.push(one_of("name", names.into_iter().map(lit).collect()));
        }
        Ok(conditions)
    }
}

/// The numbers that the references name; `None` if there are no references.
fn numbers<N: Numbered>(
    references: &[Reference<N>],
    trace: &SuperTrace,
) -> Result<Option<BTreeSet<N>>, Error> {
    if references.is_empty() {
        return Ok(None);
    }
    let mut numbers = BTreeSet::new();
    resolve_all(references, trace, &mut |_, number| _ = numbers.insert(number))?;
    Ok(Some(numbers))
}

/// With more numbers than this, the condition is a function instead of a list of literals.
const MOST_LISTED: usize = 100;

/// Whether a column holds one of these numbers. Without numbers, the condition is false.
pub fn number_in(column: &str, numbers: impl Iterator<Item = i64>) -> Expr {
    let numbers: Vec<i64> = numbers.collect();
    match numbers.len() <= MOST_LISTED {
        true => one_of(column, numbers.into_iter().map(lit).collect()),
        false => is_one_of(column, numbers),
    }
}

/// Whether a column holds one of these values. Without values, the condition is false.
fn one_of(column: &str, values: Vec<Expr>) -> Expr {
    if values.is_empty() { lit(false) } else { in_list(ident(column), values, false) }
}
