//! Table functions over intervals: rows with a start and a length.
//!
//! ```text
//!   a   |-----1-----|  |--2--|        overlap(a, b)    |--1x--|y1|  |2y|
//!   b      |--x--|-----y----|         merged(a)        |----------|  |-----|
//!                                     gaps(a)                      |-|
//! ```
//!
//! `overlap`, `overlap_left`, `merged`, `gaps` and `self_time` take the names of tables or views, or queries, and after them
//! the columns of a key: only rows of the same key meet. Each is linear but for sorting its inputs by key and start, which
//! spills to disk beyond the memory limit; keys are spread over all CPUs.

mod arguments;
mod input;
mod operation;
mod operator;
mod output;
mod parts;
mod stream;
mod sweeps;
mod table;

use std::sync::Arc;

use datafusion::{
    catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider},
    common::Result,
    datasource::{ViewTable, provider_as_source},
    logical_expr::{Expr, LogicalPlanBuilder, ident},
    prelude::SessionContext,
};

use crate::{Info, nanos};
use arguments::Arguments;
use operation::{OPERATIONS, Operation};
use output::TICKS;
use table::IntervalTable;

pub(crate) use arguments::quote_names;
pub use parts::OperatorParts;

/// The session has the functions from here on.
pub(crate) fn register(context: &SessionContext, info: &Info) {
    for operation in OPERATIONS {
        let function = IntervalFunction { operation, info: info.clone() };
        context.register_udtf(operation.name(), Arc::new(function));
    }
}

#[derive(Debug)]
struct IntervalFunction {
    operation: Operation,
    info: Info,
}

impl TableFunctionImpl for IntervalFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let IntervalFunction { operation, info } = self;
        let arguments = Arguments::new(*operation, args.exprs())?;
        let table = IntervalTable::new(*operation, &arguments, args.session(), info)?;
        let names = table.columns();
        // Those of the inputs have theirs already.
        let ticks = names.iter().filter(|name| TICKS.contains(&name.as_str()));
        let nanos = ticks.filter_map(|name| nanos::beside(name, info));
        let columns: Vec<Expr> = names.iter().map(ident).chain(nanos).collect();
        let plan = LogicalPlanBuilder::scan(operation.name(), provider_as_source(Arc::new(table)), None)?;
        Ok(Arc::new(ViewTable::new(plan.project(columns)?.build()?, None)))
    }
}
