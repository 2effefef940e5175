//! One input of a function: a table, a view or a query.

use arrow::datatypes::DataType;
use datafusion::{
    common::{Result, plan_err},
    logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, ident, lit, when},
};

use super::operation::Operation;
use crate::clocks::{Clocks, TraceClock};

/// The columns for the start and the end of an interval in the input of the operator.
const FROM: &str = "interval_from";
const TO: &str = "interval_to";

/// An input.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// If two inputs have columns of the same name, these columns are prefixed with this name.
    pub(super) name: String,
    /// The super-traces that it is read from; empty if it reads no table.
    pub(super) traces: Vec<TraceClock>,
    plan: LogicalPlan,
}

/// The unit of time, and so the names of the time columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// `ts_tick` and `dur_tick`.
    Ticks,
    /// `ts` and `dur`, as Perfetto's tables have them.
    Nanos,
}

impl Unit {
    pub(super) fn columns(self) -> [&'static str; 2] {
        match self {
            Unit::Ticks => ["ts_tick", "dur_tick"],
            Unit::Nanos => ["ts", "dur"],
        }
    }
}

impl Input {
    /// An input from a planned table or query.
    pub(super) fn new(operation: Operation, name: &str, plan: LogicalPlan, clocks: &Clocks) -> Result<Input> {
        let input = Input { name: name.to_string(), traces: clocks.read_by(&plan)?, plan };
        match [Unit::Ticks, Unit::Nanos].into_iter().any(|unit| input.has_time_in(unit)) {
            true => Ok(input),
            false => {
                plan_err!("{}: {name}: expected a column ts_tick, or ts, found neither", operation.name())
            }
        }
    }

    /// Whether it has a column with starts in this unit.
    pub(super) fn has_time_in(&self, unit: Unit) -> bool {
        self.has(unit.columns()[0])
    }

    /// Whether it has a column of this name.
    pub(super) fn has(&self, column: &str) -> bool {
        self.plan.schema().has_column_with_unqualified_name(column)
    }

    /// All its columns, including the key and the time.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&str, &DataType)> {
        self.plan.schema().fields().iter().map(|field| (field.name().as_str(), field.data_type()))
    }

    /// The type of a column.
    pub(super) fn column_type(&self, column: &str) -> Option<&DataType> {
        self.columns().find(|(name, _)| *name == column).map(|(_, ty)| ty)
    }

    /// The plan that the operator reads: keys with these types, start, end, and some columns, of the rows that pass the
    /// filters. A row without a length lasts until `end`. A row without a start is left out. A row without a key is
    /// left out if `needs_key`.
    pub(super) fn read(
        &self,
        (keys, needs_key): (&[(String, DataType)], bool),
        columns: &[String],
        filters: &[Expr],
        (unit, end): (Unit, Option<Expr>),
    ) -> Result<LogicalPlan> {
        let [start, length] = unit.columns();
        let from = || cast(ident(start), DataType::Int64);
        let to = match self.has(length) {
            true => {
                let until = match end {
                    Some(end) => when(from().lt(end.clone()), end).otherwise(from())?,
                    None => from(),
                };
                let known = from() + cast(ident(length), DataType::Int64);
                when(ident(length).is_not_null(), known).otherwise(until)?
            }
            false => from(),
        };
        let mut plan = LogicalPlanBuilder::from(self.plan.clone()).filter(ident(start).is_not_null())?;
        for (key, _) in keys.iter().filter(|_| needs_key) {
            plan = plan.filter(ident(key).is_not_null())?;
        }
        for filter in filters {
            plan = plan.filter(filter.clone())?;
        }
        let key = |(place, (key, ty)): (usize, &(String, DataType))| {
            cast(ident(key), ty.clone()).alias(key_name(place))
        };
        // Without key columns, all rows have the same key.
        let one_key = keys.is_empty().then(|| lit(0_i64).alias(key_name(0)));
        let exprs = keys.iter().enumerate().map(key).chain(one_key);
        let exprs = exprs.chain([from().alias(FROM), to.alias(TO)]);
        let kept =
            columns.iter().enumerate().map(|(place, column)| ident(column).alias(format!("column_{place}")));
        plan.project(exprs.chain(kept))?.build()
    }
}

/// The name of a key column in the input of the operator.
fn key_name(place: usize) -> String {
    format!("key_{place}")
}
