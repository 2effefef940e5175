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
mod operator;
mod output;
mod stream;
mod sweeps;
mod table;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider},
    common::Result,
    datasource::{ViewTable, provider_as_source},
    logical_expr::{Expr, LogicalPlanBuilder, ident},
    prelude::SessionContext,
};

use crate::{Info, nanos};
use arguments::Arguments;
use output::TICKS;
use table::IntervalTable;

pub(crate) use arguments::quote_names;

/// What a function does with intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// The common part of every two that overlap.
    Overlap,
    /// The same, and the parts of the first table's rows that nothing overlaps.
    OverlapLeft,
    /// The union of those that overlap or touch.
    Merged,
    /// The time between those of one key that no other covers.
    Gaps,
    /// The time of each that is in none of those inside of it.
    SelfTime,
}

const OPERATIONS: [Operation; 5] =
    [Operation::Overlap, Operation::OverlapLeft, Operation::Merged, Operation::Gaps, Operation::SelfTime];

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Overlap => "overlap",
            Operation::OverlapLeft => "overlap_left",
            Operation::Merged => "merged",
            Operation::Gaps => "gaps",
            Operation::SelfTime => "self_time",
        }
    }

    fn by_name(name: &str) -> Option<Operation> {
        OPERATIONS.into_iter().find(|operation| operation.name() == name)
    }

    /// How many tables it takes.
    fn tables(self) -> usize {
        match self {
            Operation::Overlap | Operation::OverlapLeft => 2,
            Operation::Merged | Operation::Gaps | Operation::SelfTime => 1,
        }
    }

    /// The column it adds, if it adds one: a count, or a length.
    fn added(self) -> Option<&'static str> {
        match self {
            Operation::Merged => Some("intervals"),
            Operation::SelfTime => Some("self"),
            Operation::Overlap | Operation::OverlapLeft | Operation::Gaps => None,
        }
    }

    /// Whether its rows have the columns of the rows they are made of, beside the key.
    fn keeps_columns(self) -> bool {
        matches!(self, Operation::Overlap | Operation::OverlapLeft | Operation::SelfTime)
    }
}

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

/// Whether rows can be of the same key if one has this type and the other that.
fn common_key_type(one: &DataType, other: &DataType) -> Option<DataType> {
    let plain = |ty: &DataType| match ty {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        ty if ty.is_integer() => DataType::Int64,
        ty => ty.clone(),
    };
    let (one, other) = (plain(one), plain(other));
    (one == other).then_some(one)
}
