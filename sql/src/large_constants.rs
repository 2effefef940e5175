//! Refuses constants that a query would copy to each row and that are too large for that.
//!
//! `SELECT range(1, 1000000)` is a row of 8 MB. In `SELECT range(1, 1000000) FROM events` DataFusion evaluates the same
//! constant once, and copies it to each of the 8192 rows of a batch: 64 GB.

use std::mem::size_of_val;

use datafusion::{
    common::{Result, ScalarValue, plan_err, tree_node::TreeNodeRecursion},
    logical_expr::{EmptyRelation, Expr, LogicalPlan},
};

use crate::functions::MOST_BYTES;

/// The number of rows in a batch.
const BATCH: usize = 8192;

/// Checks an optimized plan. `is_copied` tells whether its rows are copied by whoever reads them.
///
/// # Errors
///
/// If a column of a batch would have more than [`MOST_BYTES`] of copies of a constant.
pub(crate) fn refuse_large_constants(optimized: &LogicalPlan, is_copied: bool) -> Result<()> {
    // Each plan with the expressions of it whose values are copied above. A list of what is left, since plans can be deep.
    let mut left = vec![(optimized, if is_copied { Copied::All } else { Copied::None })];
    while let Some((plan, copied_above)) = left.pop() {
        let is_one_row = plan.inputs().iter().all(|input| is_one_row(input));
        if has_values_of_rows(plan) {
            for (place, expr) in plan.expressions().iter().enumerate() {
                let rows = if is_one_row && !copied_above.has(place) { 1 } else { BATCH };
                let bytes = copied(expr).saturating_mul(rows);
                if bytes > MOST_BYTES {
                    return plan_err!(
                        "a constant for each of {rows} rows: expected at most {} MiB in all, found {} MiB",
                        MOST_BYTES >> 20,
                        bytes >> 20
                    );
                }
            }
        }
        // The value of a subquery is one of each row.
        plan.apply_subqueries(|subquery| {
            refuse_large_constants(subquery, true).map(|()| TreeNodeRecursion::Continue)
        })?;
        let below = match plan {
            // A row is copied for each that it is joined with.
            LogicalPlan::Join(_) => Copied::All,
            // And for each item of its lists, but for these lists.
            LogicalPlan::Unnest(unnest) if matches!(copied_above, Copied::None) => {
                Copied::AllBut(unnest.list_type_columns.iter().map(|(place, _)| *place).collect())
            }
            LogicalPlan::Projection(_) if !matches!(copied_above, Copied::None) => Copied::All,
            _ => copied_above,
        };
        left.extend(plan.inputs().into_iter().map(|input| (input, below.clone())));
    }
    Ok(())
}

/// Which columns of a plan are copied.
#[derive(Clone)]
enum Copied {
    None,
    /// All but those at these places.
    AllBut(Vec<usize>),
    All,
}

impl Copied {
    fn has(&self, place: usize) -> bool {
        match self {
            Copied::None => false,
            Copied::AllBut(places) => !places.contains(&place),
            Copied::All => true,
        }
    }
}

/// Whether the expressions of an operator become columns.
fn has_values_of_rows(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_)
    )
}

fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row, .. }) => *produce_one_row,
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        _ => false,
    }
}

/// The size of the constants that an expression copies to each row. As an argument of a function, a constant stays one.
fn copied(expr: &Expr) -> usize {
    let all = |exprs: &mut dyn Iterator<Item = &Expr>| exprs.map(copied).max().unwrap_or(0);
    match expr {
        Expr::Literal(value, _) => size(value),
        Expr::Alias(alias) => copied(&alias.expr),
        Expr::Cast(cast) => copied(&cast.expr),
        Expr::TryCast(cast) => copied(&cast.expr),
        Expr::Case(case) => {
            let thens = case.when_then_expr.iter().map(|(_, then)| &**then);
            all(&mut thens.chain(case.else_expr.as_deref()))
        }
        Expr::AggregateFunction(function) => all(&mut function.params.args.iter()),
        Expr::WindowFunction(function) => all(&mut function.params.args.iter()),
        _ => 0,
    }
}

/// The size of a value in a column. That of a number does not matter.
fn size(value: &ScalarValue) -> usize {
    value.size() - size_of_val(value)
}
