//! A filter as expressions on the columns of `events` and `active`.

use datafusion::logical_expr::{Expr, ident, in_list, lit};
use sigmund_model::Thread;
use sigmund_sql::SuperTrace;

use super::one_of::is_one_of;
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
            let message =
                format!("--from {from} --to {to}: expected an end after the beginning, but {ticks}");
            return Err(Error::argument(message));
        }
        Ok(window)
    }

    /// The threads that the filter names; `None` if it names none.
    ///
    /// # Errors
    /// When the filter has thread names and those of the trace cannot be read.
    pub fn thread_numbers(&self, trace: &SuperTrace) -> Result<Option<Vec<Thread>>, Error> {
        if self.threads.is_empty() {
            return Ok(None);
        }
        let mut numbers = Vec::new();
        for thread in &self.threads {
            numbers.extend(thread.resolve(trace)?);
        }
        numbers.sort();
        numbers.dedup();
        Ok(Some(numbers))
    }

    /// The conditions on the columns `lwp` and `cpu`.
    pub fn place(&self) -> Vec<Expr> {
        let mut conditions = Vec::new();
        if !self.lwps.is_empty() {
            conditions.push(number_in("lwp", self.lwps.iter().map(|l| i64::from(l.0))));
        }
        if !self.cpus.is_empty() {
            conditions.push(number_in("cpu", self.cpus.iter().map(|c| i64::from(c.0))));
        }
        conditions
    }

    /// All conditions on a row of `events`.
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn events_where(&self, trace: &SuperTrace) -> Result<Vec<Expr>, Error> {
        let mut conditions = self.window(trace)?.holds("ts_tick");
        conditions.extend(self.place());
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

/// More numbers than these are no list of literals.
const MOST_LISTED: usize = 100;

/// Whether a column holds one of these numbers; never, if there is none.
pub fn number_in(column: &str, numbers: impl Iterator<Item = i64>) -> Expr {
    let numbers: Vec<i64> = numbers.collect();
    match numbers.len() <= MOST_LISTED {
        true => one_of(column, numbers.into_iter().map(lit).collect()),
        false => is_one_of(column, numbers),
    }
}

/// Whether a column holds one of these values; never, if there is none.
fn one_of(column: &str, values: Vec<Expr>) -> Expr {
    if values.is_empty() { lit(false) } else { in_list(ident(column), values, false) }
}
