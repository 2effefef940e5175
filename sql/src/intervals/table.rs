//! A call of a function, as a table.

use std::{fmt, sync::Arc};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::{
    catalog::{Session, TableProvider},
    common::{Result, plan_err},
    execution::SessionState,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType},
    physical_plan::ExecutionPlan,
    physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner},
};

use sigmund_model::Ticks;

use super::{
    arguments::Arguments,
    input::{Input, Unit},
    operation::Operation,
    operator::IntervalExec,
    output::{Origin, Output},
};
use crate::Info;

/// What a function makes of its inputs, when it is read.
pub(super) struct IntervalTable {
    operation: Operation,
    inputs: Vec<Input>,
    output: Output,
    /// Until when rows without a length last.
    end: i64,
}

impl IntervalTable {
    pub(super) fn new(
        operation: Operation,
        arguments: &Arguments,
        session: &dyn Session,
        info: &Info,
    ) -> Result<IntervalTable> {
        let sides = ["left", "right"].into_iter();
        let inputs =
            arguments.tables.iter().zip(sides).map(|(text, side)| Input::new(operation, text, side, session));
        let inputs: Vec<Input> = inputs.collect::<Result<_>>()?;
        let output = Output::new(operation, &inputs, &arguments.keys)?;
        let last = info.last_tick().map_or(0, |tick| tick.0 as i64);
        let end = match (output.unit, info.tick_hz(), info.first_tick()) {
            (Unit::Ticks, ..) => last,
            (Unit::Nanos, Some(hz), Some(first)) => {
                let length = Ticks((last as u64).saturating_sub(first.0));
                i64::try_from(hz.to_nanos(length).0).unwrap_or(i64::MAX)
            }
            (Unit::Nanos, ..) => i64::MAX,
        };
        Ok(IntervalTable { operation, inputs, output, end })
    }

    /// The names of its columns.
    pub(super) fn columns(&self) -> Vec<String> {
        self.output.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Whether a filter is of the key alone: then it can be asked of the inputs.
    fn is_of_key(&self, filter: &Expr) -> bool {
        let is_text = |ty: &DataType| ty.is_string();
        let is_key = |name: &str| self.output.keys.iter().any(|(key, ty)| key == name && !is_text(ty));
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
            let plan = input.read(&self.output.keys, &columns, filters, (self.output.unit, self.end))?;
            // By DataFusion's planner: that of a client of a cluster would send each input as a query of its own.
            let plan = session.optimize(&plan)?;
            plans.push(DefaultPhysicalPlanner::default().create_physical_plan(&plan, session).await?);
        }
        let schema = Arc::new(self.output.schema.project(places)?);
        let origins: Vec<Origin> = places.iter().map(|place| self.output.origins[*place].clone()).collect();
        let keys = self.output.keys.len();
        let key = (keys.max(1), keys == 0);
        Ok(Arc::new(IntervalExec::new(self.operation, plans, key, origins, schema)))
    }
}
