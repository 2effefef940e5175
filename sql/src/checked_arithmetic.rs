//! Replaces `+`, `-` and `*` of integers by [checked functions](functions::checked) everywhere in a query, including
//! constants, join conditions and windows.

use datafusion::{
    common::{
        DFSchema, Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    config::ConfigOptions,
    logical_expr::{
        BinaryExpr, Expr, ExprSchemable, LogicalPlan, expr_rewriter::NamePreserver, utils::merge_schema,
    },
    optimizer::AnalyzerRule,
};

use crate::functions;

/// The rule. It runs after `TypeCoercion`, which gives both sides the same type.
#[derive(Debug)]
pub(crate) struct CheckArithmetic;

impl AnalyzerRule for CheckArithmetic {
    fn name(&self) -> &str {
        "check_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(in_plan).data()
    }
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        let source = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
        schema.merge(&source);
    }
    let names = NamePreserver::new(&plan);
    let rewrite = |expr: Expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| in_expr(expr, &schema))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    };
    // The columns of a grouping set are named after the expressions in it, so the set itself has to stay.
    let rewritten = plan.map_expressions(|expr| match expr {
        Expr::GroupingSet(_) => expr.map_children(rewrite),
        expr => rewrite(expr),
    })?;
    match rewritten.transformed {
        true => rewritten.map_data(LogicalPlan::recompute_schema),
        false => Ok(rewritten),
    }
}

fn in_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else { return Ok(Transformed::no(expr)) };
    let Some(checked) = functions::checked(*op) else { return Ok(Transformed::no(expr)) };
    let (of_left, of_right) = (left.get_type(schema)?, right.get_type(schema)?);
    match of_left == of_right && of_left.is_integer() {
        true => Ok(Transformed::yes(checked.call(vec![*left.clone(), *right.clone()]))),
        false => Ok(Transformed::no(expr)),
    }
}
