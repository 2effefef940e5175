//! The clocks of the super-traces that a session reads, and which of them apply to the rows of a plan.
//!
//! The clock of one super-trace cannot convert the ticks of another. So the plan of a query is searched for the tables
//! that it reads. These are files of super-traces, which are recognised by their URLs, even below views and subqueries.

use std::sync::{PoisonError, RwLock};

use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    datasource::{listing::ListingTable, source_as_provider},
    logical_expr::{Expr, LogicalPlan, expr::ScalarFunction},
};

use crate::{
    Info,
    functions::{ByClock, NamedClock, only_clock},
    intervals::IntervalTable,
};

/// The clocks of a session.
#[derive(Debug, Default)]
pub(crate) struct Clocks(RwLock<Session>);

#[derive(Debug, Default)]
struct Session {
    /// The clock of the session's own super-trace is the first.
    traces: Vec<TraceClock>,
    is_fleet: bool,
}

/// The clock of a super-trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceClock {
    /// The prefix of the URLs of its files in plans.
    url: String,
    pub(crate) info: Info,
    pub(crate) clock: NamedClock,
}

impl TraceClock {
    pub(crate) fn new(url: &str, info: &Info, clock: NamedClock) -> TraceClock {
        TraceClock { url: url.to_string(), info: info.clone(), clock }
    }

    /// The name of its super-trace; empty if it has none.
    pub(crate) fn name(&self) -> &str {
        self.clock.names.first().map_or("", String::as_str)
    }
}

impl Clocks {
    /// The clocks of a session that reads this super-trace.
    pub(crate) fn of(own: TraceClock) -> Clocks {
        Clocks(RwLock::new(Session { traces: vec![own], is_fleet: false }))
    }

    /// Gives the session's own super-trace a name.
    pub(crate) fn name(&self, name: &str) {
        let mut session = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = session.traces.first_mut() {
            own.clock.names.push(name.to_string());
        }
    }

    /// Adds the clock of another session's super-trace, which this session reads, too.
    pub(crate) fn attach(&self, name: &str, other: &Clocks) {
        let Some(mut own) = other.all().into_iter().next() else { return };
        own.clock.names = vec![name.to_string()];
        self.0.write().unwrap_or_else(PoisonError::into_inner).traces.push(own);
    }

    /// From now on, names without a schema stand for the tables of all super-traces.
    pub(crate) fn join(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).is_fleet = true;
    }

    /// Whether names without a schema stand for the tables of all super-traces.
    pub(crate) fn is_fleet(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_fleet
    }

    fn all(&self) -> Vec<TraceClock> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).traces.clone()
    }

    /// The super-traces that names without a schema, measures and constants refer to.
    pub(crate) fn without_schema(&self) -> Vec<TraceClock> {
        let mut traces = self.all();
        if !self.is_fleet() {
            traces.truncate(1);
        }
        traces
    }

    /// The clocks of the super-traces that names without a schema refer to.
    pub(crate) fn of_names_without_schema(&self) -> Vec<NamedClock> {
        self.without_schema().into_iter().map(|trace| trace.clock).collect()
    }

    /// The super-traces that a plan reads; empty if it reads no table.
    pub(crate) fn read_by(&self, plan: &LogicalPlan) -> Result<Vec<TraceClock>> {
        let all = self.all();
        let mut are_read = vec![false; all.len()];
        let mut mark = |url: &str| {
            for (trace, is_read) in all.iter().zip(&mut are_read) {
                *is_read |= url.starts_with(&trace.url);
            }
        };
        plan.apply_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
            let provider = source_as_provider(&scan.source)?;
            if let Some(files) = provider.downcast_ref::<ListingTable>() {
                files.table_paths().iter().for_each(|path| mark(path.as_str()));
            } else if let Some(intervals) = provider.downcast_ref::<IntervalTable>() {
                intervals.traces().iter().for_each(|trace| mark(&trace.url));
            } else {
                // The plan of a measure.
                self.without_schema().iter().for_each(|trace| mark(&trace.url));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(all.into_iter().zip(are_read).filter_map(|(trace, is_read)| is_read.then_some(trace)).collect())
    }

    /// Gives each function that converts times the clocks of the rows that it converts.
    ///
    /// # Errors
    /// When a function could use several clocks and its call does not name one.
    pub(crate) fn bind(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if self.all().len() < 2 {
            return Ok(plan);
        }
        plan.transform_down_with_subqueries(|node| {
            if !has_unbound(&node)? {
                return Ok(Transformed::no(node));
            }
            let rows_are_of = self.of_inputs(&node)?;
            node.map_expressions(|expr| expr.transform_up(|expr| self.bound(expr, &rows_are_of)))
        })
        .data()
    }

    /// The clocks of the rows that are the input of a step of a plan.
    fn of_inputs(&self, node: &LogicalPlan) -> Result<Vec<NamedClock>> {
        let mut clocks = Vec::new();
        node.inputs().into_iter().try_for_each(|input| self.add_read_by(input, &mut clocks))?;
        Ok(clocks)
    }

    fn add_read_by(&self, plan: &LogicalPlan, clocks: &mut Vec<NamedClock>) -> Result<()> {
        for trace in self.read_by(plan)? {
            if !clocks.contains(&trace.clock) {
                clocks.push(trace.clock);
            }
        }
        Ok(())
    }

    /// The clocks that may apply to a time: those of the rows with its columns, and those of the subqueries in it.
    fn of_time(&self, time: &Expr, rows_are_of: &[NamedClock]) -> Result<Vec<NamedClock>> {
        // The rows of an outer query may be from any super-trace.
        if time.contains_outer() {
            return Ok(self.all().into_iter().map(|trace| trace.clock).collect());
        }
        let mut clocks = if time.any_column_refs() { rows_are_of.to_vec() } else { Vec::new() };
        time.apply(|expr| {
            if let Expr::ScalarSubquery(query) = expr {
                self.add_read_by(&query.subquery, &mut clocks)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        match clocks.is_empty() {
            true => Ok(self.of_names_without_schema()),
            false => Ok(clocks),
        }
    }

    fn bound(&self, expr: Expr, rows_are_of: &[NamedClock]) -> Result<Transformed<Expr>> {
        let Expr::ScalarFunction(ScalarFunction { func, args }) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let Some(function) = unbound(func) else { return Ok(Transformed::no(expr)) };
        let clocks = match args.as_slice() {
            [time] => self.of_time(time, rows_are_of)?,
            // A call that names a clock may name any of them.
            _ => self.all().into_iter().map(|trace| trace.clock).collect(),
        };
        if args.len() == 1 {
            only_clock(function.conversion(), &clocks)?;
        }
        let func = ByClock::bound(function.conversion(), clocks).into();
        Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: args.clone() })))
    }
}

/// A function that converts times and still has the clocks of the session.
fn unbound(function: &datafusion::logical_expr::ScalarUDF) -> Option<&ByClock> {
    function.inner().downcast_ref::<ByClock>().filter(|function| function.is_of_session())
}

fn has_unbound(node: &LogicalPlan) -> Result<bool> {
    let mut has = false;
    node.apply_expressions(|expr| {
        has |= expr
            .exists(|expr| Ok(matches!(expr, Expr::ScalarFunction(call) if unbound(&call.func).is_some())))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(has)
}
