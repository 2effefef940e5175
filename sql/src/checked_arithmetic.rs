//! `+`, `-` and `*` of integers that fail when their result exceeds 64 bits, as in PostgreSQL and DuckDB.
//! DataFusion's go on with the lowest 64 bits: the square of a length of four seconds, in nanoseconds, would be negative.
//!
//! Arithmetic of constants alone is done when the query is planned, and is DataFusion's. On a cluster, too: the encoding of plans
//! has no place for it.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::{
    common::{
        Result, exec_datafusion_err,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    config::ConfigOptions,
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr, aggregate::AggregateFunctionExpr, expressions::BinaryExpr, projection::ProjectionExpr,
    },
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ExecutionPlan,
        aggregates::AggregateExec,
        filter::{FilterExec, FilterExecBuilder},
        projection::ProjectionExec,
    },
};

/// Makes the arithmetic of columns, conditions and aggregated values fail. It goes before all other rules: they move expressions to
/// where it does not look, such as into the reading of files.
#[derive(Debug)]
pub(crate) struct CheckArithmetic;

impl PhysicalOptimizerRule for CheckArithmetic {
    fn name(&self) -> &'static str {
        "CheckArithmetic"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let checked = match plan.downcast_ref::<ProjectionExec>() {
                Some(projection) => of_projection(projection)?,
                None => match (plan.downcast_ref::<FilterExec>(), plan.downcast_ref::<AggregateExec>()) {
                    (Some(filter), _) => of_filter(filter)?,
                    (_, Some(aggregate)) => of_aggregate(aggregate)?,
                    (None, None) => None,
                },
            };
            Ok(checked.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A plan in which something is checked that was not; `None` if there was nothing to do.
type Checked = Result<Option<Arc<dyn ExecutionPlan>>>;

fn of_projection(projection: &ProjectionExec) -> Checked {
    let schema = projection.input().schema();
    let exprs: Vec<_> =
        projection.expr().iter().map(|column| checked(&column.expr, &schema)).collect::<Result<_>>()?;
    if !exprs.iter().any(|expr| expr.transformed) {
        return Ok(None);
    }
    let named =
        |(column, expr): (&ProjectionExpr, Transformed<_>)| ProjectionExpr::new(expr.data, &column.alias);
    let exprs = projection.expr().iter().zip(exprs).map(named);
    let input = Arc::clone(projection.input());
    Ok(Some(Arc::new(ProjectionExec::try_new_with_schema_metadata(exprs, input, &projection.schema())?)))
}

fn of_filter(filter: &FilterExec) -> Checked {
    let predicate = checked(filter.predicate(), &filter.input().schema())?;
    if !predicate.transformed {
        return Ok(None);
    }
    Ok(Some(Arc::new(FilterExecBuilder::from(filter).with_predicate(predicate.data).build()?)))
}

fn of_aggregate(aggregate: &AggregateExec) -> Checked {
    let schema = aggregate.input_schema();
    let mut is_changed = false;
    let mut functions = Vec::new();
    for function in aggregate.aggr_expr() {
        let all = function.all_expressions();
        let args: Vec<_> = all.args.iter().map(|arg| checked(arg, &schema)).collect::<Result<_>>()?;
        if !args.iter().any(|arg| arg.transformed) {
            functions.push(Arc::clone(function));
            continue;
        }
        is_changed = true;
        let args = args.into_iter().map(|arg| arg.data).collect();
        let rewritten: Option<AggregateFunctionExpr> =
            function.with_new_expressions(args, all.order_by_exprs);
        let rewritten = rewritten
            .ok_or_else(|| exec_datafusion_err!("the arguments of {} cannot be checked", function.name()))?;
        functions.push(Arc::new(rewritten));
    }
    Ok(is_changed.then(|| Arc::new(aggregate.with_new_aggr_exprs(functions)) as Arc<dyn ExecutionPlan>))
}

/// An expression whose arithmetic of integers fails.
fn checked(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    Arc::clone(expr).transform_up(|expr| {
        let Some(binary) = expr.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(expr)) };
        let may_overflow = matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply)
            && expr.data_type(schema)?.is_integer();
        Ok(match may_overflow {
            true => Transformed::yes(Arc::new(binary.clone().with_fail_on_overflow(true)) as _),
            false => Transformed::no(expr),
        })
    })
}
