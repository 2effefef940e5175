//! Plans the calls in a query. It uses DataFusion's SQL planner for the arguments, so that these may be anything that a
//! query may name there.

use std::sync::Arc;

use datafusion::{
    common::Result,
    datasource::provider_as_source,
    logical_expr::{
        LogicalPlan, LogicalPlanBuilder,
        planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning},
    },
    sql::sqlparser::ast::TableFactor,
};

use super::{
    arguments::{Call, operation},
    input::Input,
    table::IntervalTable,
};
use crate::clocks::Clocks;

/// Plans calls of functions over intervals.
#[derive(Debug)]
pub(super) struct IntervalPlanner {
    pub(super) clocks: Arc<Clocks>,
}

impl RelationPlanner for IntervalPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some(operation) = operation(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let TableFactor::Table { args: Some(arguments), alias, .. } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let plan = self.plan(Call::new(operation, arguments.args)?, context)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

impl IntervalPlanner {
    fn plan(&self, call: Call, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let Call { operation, inputs, keys } = call;
        let mut planned = Vec::new();
        for ((name, query), side) in inputs.into_iter().zip(["left", "right"]) {
            let query = TableFactor::Derived { lateral: false, subquery: query, alias: None, sample: None };
            let plan = self.clocks.bind(context.plan(query)?)?;
            planned.push(Input::new(operation, name.as_deref().unwrap_or(side), plan, &self.clocks)?);
        }
        let table = IntervalTable::new(operation, planned, &keys, &self.clocks)?;
        let columns = table.expressions()?;
        let plan = LogicalPlanBuilder::scan(operation.name(), provider_as_source(Arc::new(table)), None)?;
        plan.project(columns)?.alias(operation.name())?.build()
    }
}
