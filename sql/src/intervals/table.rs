//! A call of a function over intervals, as a table.

use std::{fmt, sync::Arc};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::{
    catalog::{Session, TableProvider},
    common::{Result, plan_err},
    execution::SessionState,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType, ident},
    physical_plan::ExecutionPlan,
    physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner},
};

use super::{
    input::Input,
    operation::Operation,
    operator::IntervalExec,
    output::{Origin, Output},
    times::Times,
};
use crate::{
    clocks::{Clocks, TraceClock},
    large_constants::refuse_large_constants,
};

/// The result of a function. It is computed when the table is read.
pub(crate) struct IntervalTable {
    operation: Operation,
    inputs: Vec<Input>,
    output: Output,
    times: Times,
}

impl IntervalTable {
    pub(super) fn new(
        operation: Operation,
        inputs: Vec<Input>,
        keys: &[String],
        clocks: &Clocks,
    ) -> Result<IntervalTable> {
        let times = Times::of(operation.name(), &inputs, clocks)?;
        let output = Output::new(operation, &inputs, keys, &times)?;
        Ok(IntervalTable { operation, inputs, output, times })
    }

    /// The columns of the result, and the additional ones in nanoseconds.
    pub(super) fn expressions(&self) -> Result<Vec<Expr>> {
        let mut columns: Vec<Expr> =
            self.output.schema.fields().iter().map(|field| ident(field.name())).collect();
        for (tick, name) in self.output.in_nanos() {
            columns.push(self.times.in_nanos(tick)?.alias(name));
        }
        Ok(columns)
    }

    /// The super-traces that its tables are from.
    pub(crate) fn traces(&self) -> &[TraceClock] {
        self.times.traces()
    }

    /// Whether rows of an input without a key are left out, because their key equals no other.
    fn needs_key(&self, input: usize) -> bool {
        match self.operation {
            Operation::Overlap => true,
            Operation::OverlapLeft => input == 1,
            Operation::Merged | Operation::Gaps | Operation::SelfTime => false,
        }
    }

    /// Whether a filter uses only the key. It can then be applied to the inputs.
    fn is_of_key(&self, filter: &Expr) -> bool {
        // Words are dictionaries in tables and plain texts in the result. So the types have to be compared.
        let is_of_inputs = |key: &str, ty: &DataType| {
            !ty.is_string() || self.inputs.iter().all(|input| input.column_type(key) == Some(ty))
        };
        let is_key =
            |name: &str| self.output.keys.iter().any(|(key, ty)| key == name && is_of_inputs(key, ty));
        let columns = filter.column_refs();
        !columns.is_empty() && columns.iter().all(|column| is_key(&column.name)) && !filter.is_volatile()
    }
}

impl fmt::Debug for IntervalTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalTable").field("operation", &self.operation).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl TableProvider for IntervalTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.output.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let pushed = |filter: &&Expr| match self.is_of_key(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(pushed).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(session) = state.as_any().downcast_ref::<SessionState>() else {
            return plan_err!("{}: the session cannot plan queries", self.operation.name());
        };
        let all: Vec<usize> = (0..self.output.origins.len()).collect();
        let places = projection.unwrap_or(&all);
        let mut plans = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let columns = self.output.of_input(places, number);
            let keys = (self.output.keys.as_slice(), self.needs_key(number));
            let unit = self.output.unit;
            let plan = input.read(keys, &columns, filters, (unit, self.times.end(unit, input)?))?;
            // Uses DataFusion's own planner. The planner of a cluster's client would send each input as a separate
            // query.
            let plan = session.optimize(&plan)?;
            // A row of an input has a copy for each row that it takes part in.
            refuse_large_constants(&plan, true)?;
            plans.push(DefaultPhysicalPlanner::default().create_physical_plan(&plan, session).await?);
        }
        let schema = Arc::new(self.output.schema.project(places)?);
        let origins: Vec<Origin> = places.iter().map(|place| self.output.origins[*place].clone()).collect();
        let keys = self.output.keys.len();
        let key = (keys.max(1), keys == 0);
        Ok(Arc::new(IntervalExec::new(self.operation, plans, key, origins, schema)))
    }
}
