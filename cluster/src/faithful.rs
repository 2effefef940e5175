//! Checks that a plan means the same on another machine. A property that the encoding loses must not lead to a
//! different answer.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::{DataType, FieldRef},
    common::{
        Result, not_impl_err,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    datasource::source::DataSourceExec,
    execution::TaskContext,
    physical_expr::{
        expressions::{CastExpr, Column},
        projection::ProjectionExpr,
    },
    physical_plan::{
        ExecutionPlan,
        analyze::AnalyzeExec,
        displayable,
        empty::EmptyExec,
        placeholder_row::PlaceholderRowExec,
        projection::ProjectionExec,
        windows::{BoundedWindowAggExec, WindowAggExec},
    },
};
use datafusion_proto::{
    physical_plan::{AsExecutionPlan, PhysicalExtensionCodec},
    protobuf::PhysicalPlanNode,
};

/// Checks that a plan can be executed on other machines: it has to be the same after it was encoded and decoded, and
/// its rows have to come from sources that Ballista can divide.
///
/// # Errors
/// When a part of the plan cannot run on a cluster; the message names it.
pub(crate) fn check(
    plan: &Arc<dyn ExecutionPlan>,
    codec: &dyn PhysicalExtensionCodec,
    context: &TaskContext,
) -> Result<()> {
    plan.apply(|plan| {
        if plan.is::<AnalyzeExec>() {
            return not_impl_err!("EXPLAIN ANALYZE is of one process: leave out --cluster");
        }
        let is_divided = |plan: &Arc<dyn ExecutionPlan>| {
            plan.is::<DataSourceExec>() || plan.is::<EmptyExec>() || plan.is::<PlaceholderRowExec>()
        };
        if plan.children().is_empty() && !is_divided(plan) {
            return not_impl_err!(
                "a cluster cannot divide the rows of {}: leave out --cluster, or ask without them",
                plan.name()
            );
        }
        let windows = plan.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr);
        let windows =
            windows.or_else(|| plan.downcast_ref::<BoundedWindowAggExec>().map(|plan| plan.window_expr()));
        for window in windows.unwrap_or_default() {
            // DataFusion's encoding of a window function loses this property.
            if window.name().contains("IGNORE NULLS") {
                return not_impl_err!(
                    "IGNORE NULLS of a window function does not reach a cluster: leave out --cluster"
                );
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let encoded = PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), codec)?;
    let decoded = encoded.try_into_physical_plan(context, codec)?;
    let (expected, found) = (text(plan), text(&decoded));
    if columns(plan) == columns(&decoded) && expected == found {
        return Ok(());
    }
    let first = expected.iter().zip(&found).find(|(one, other)| one != other);
    let (expected, found) = first.map_or(("its columns", "others"), |(one, other)| (one, other));
    not_impl_err!(
        "the plan would be another on the cluster: leave out --cluster. Expected `{expected}`, found `{found}`"
    )
}

/// The names and types of its columns. The descriptions of columns do not matter for the rows.
fn columns(plan: &Arc<dyn ExecutionPlan>) -> Vec<(String, DataType)> {
    plan.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// A line for each operator, with its depth. Projections that change nothing are left out: decoding a UNION adds them,
/// just as planning did.
fn text(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    fn add(plan: &Arc<dyn ExecutionPlan>, depth: usize, lines: &mut Vec<String>) {
        let below = if changes_nothing(plan) { depth } else { depth + 1 };
        if below > depth {
            lines.push(format!("{depth} {}", displayable(plan.as_ref()).one_line().to_string().trim()));
        }
        plan.children().into_iter().for_each(|child| add(child, below, lines));
    }
    let mut lines = Vec::new();
    add(plan, 0, &mut lines);
    lines
}

/// Whether it is a projection to the same columns of the same types.
fn changes_nothing(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return false };
    let input = projection.input().schema();
    let exprs = projection.expr();
    let is_same = |(place, (expr, field)): (usize, (&ProjectionExpr, &FieldRef))| {
        let cast = expr.expr.downcast_ref::<CastExpr>();
        let inner = cast.map_or(&expr.expr, CastExpr::expr);
        let is_column = inner.downcast_ref::<Column>().is_some_and(|column| column.index() == place);
        let is_type = cast.is_none_or(|cast| cast.cast_type() == field.data_type());
        is_column && is_type && expr.alias == *field.name()
    };
    exprs.len() == input.fields().len() && exprs.iter().zip(input.fields()).enumerate().all(is_same)
}
