//! Table functions over intervals: rows with a start and a length.
//!
//! ```text
//!   a   |-----1-----|  |--2--|        overlap(a, b)    |--1x--|y1|  |2y|
//!   b      |--x--|-----y----|         merged(a)        |----------|  |-----|
//!                                     gaps(a)                      |-|
//! ```
//!
//! `overlap`, `overlap_left`, `merged`, `gaps` and `self_time` take the names of tables or views, or queries, followed
//! by the columns of a key. Only rows with the same key are combined, and never rows of different hosts. NULL in a key
//! works as in joins and GROUP BY: between two tables, a key with NULL equals no other key; within one table, NULL is a
//! key of its own. Each function is linear, except for sorting its inputs by key and start. The sort spills to disk
//! beyond the memory limit. Keys are distributed over all CPUs.

mod arguments;
mod by_key;
mod described;
mod input;
mod operation;
mod operator;
mod output;
mod parts;
mod planner;
mod stream;
mod sweeps;
mod table;
mod times;

use std::sync::Arc;

use datafusion::{
    catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider},
    common::{Result, plan_err},
    prelude::SessionContext,
};

use crate::clocks::Clocks;
use operation::{OPERATIONS, Operation};
use planner::IntervalPlanner;

pub(crate) use arguments::tables_as_queries;
pub(crate) use by_key::SortIntervalsByKey;
pub use described::interval_functions;
pub use parts::OperatorParts;
pub(crate) use table::IntervalTable;

/// Registers the functions in a session.
pub(crate) fn register(context: &SessionContext, clocks: &Arc<Clocks>) -> Result<()> {
    for operation in OPERATIONS {
        context.register_udtf(operation.name(), Arc::new(Listed(operation)));
    }
    context.register_relation_planner(Arc::new(IntervalPlanner { clocks: Arc::clone(clocks) }))
}

/// A function in the session's list of functions. Its calls are planned by [`IntervalPlanner`].
#[derive(Debug)]
struct Listed(Operation);

impl TableFunctionImpl for Listed {
    fn call_with_args(&self, _: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        plan_err!("{0}: expected a call by its name alone, as in FROM {0}(…)", self.0.name())
    }
}
