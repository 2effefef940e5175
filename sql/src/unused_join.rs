//! Removes joins whose columns are not used. So a view that joins for one of its columns costs the join only if the
//! query uses that column.
//!
//! If the right side of a left join is grouped by the join keys, then the join keeps each row of the left side exactly
//! once. If nothing above it uses a column of the right side, it can be replaced by the left side. DataFusion does not
//! do that.

use std::sync::Arc;

use datafusion::{
    common::{Result, tree_node::Transformed},
    logical_expr::{Aggregate, Expr, Join, JoinType, LogicalPlan, Projection},
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

/// Removes left joins if no column of the right side is used.
#[derive(Debug)]
pub(crate) struct EliminateUnusedJoin;

impl OptimizerRule for EliminateUnusedJoin {
    fn name(&self) -> &'static str {
        "eliminate_unused_join"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Projection(projection) = &plan else { return Ok(Transformed::no(plan)) };
        let LogicalPlan::Join(join) = projection.input.as_ref() else { return Ok(Transformed::no(plan)) };
        let uses_left_only = projection
            .expr
            .iter()
            .all(|expr| expr.column_refs().iter().all(|column| join.left.schema().has_column(column)));
        if join.join_type != JoinType::Left || !uses_left_only || !matches_one_row_at_most(join) {
            return Ok(Transformed::no(plan));
        }
        let without = Projection::try_new(projection.expr.clone(), Arc::clone(&join.left))?;
        Ok(Transformed::yes(LogicalPlan::Projection(without)))
    }
}

/// Whether the rows of the right side are grouped, and each grouping column is a join key.
fn matches_one_row_at_most(join: &Join) -> bool {
    let keys = join.on.iter().map(|(_, right)| right);
    grouped_columns(&join.right)
        .is_some_and(|grouped| grouped.iter().all(|column| keys.clone().any(|key| key == column)))
}

/// The columns by which the rows of a plan are grouped. No two rows have the same values in these.
fn grouped_columns(plan: &LogicalPlan) -> Option<Vec<Expr>> {
    let LogicalPlan::Aggregate(Aggregate { group_expr, schema, .. }) = plan else { return None };
    let is_plain = group_expr.iter().all(|expr| !matches!(expr, Expr::GroupingSet(_)));
    let columns = schema.columns().into_iter().take(group_expr.len());
    is_plain.then(|| columns.map(Expr::Column).collect())
}
