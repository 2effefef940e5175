//! `SELECT EXISTS (SELECT …)`: DataFusion knows EXISTS only as a condition. As a value, it is whether the number of rows is not 0.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::{
    ast::{Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, VisitorMut},
    dialect::GenericDialect,
    parser::Parser,
};

use crate::visited::visit;

/// Replaces EXISTS in the columns of a SELECT, but not in queries in these columns.
pub(super) fn as_values(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            _ = visit(expr, &mut Values { depth: 0 });
        }
    }
}

struct Values {
    /// The number of queries around the visited expression.
    depth: usize,
}

impl VisitorMut for Values {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Exists { subquery, negated } = expr
            && self.depth == 0
        {
            *expr = counted((**subquery).clone(), *negated);
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query has rows, or has none, as a query for one value.
fn counted(mut query: Query, negated: bool) -> Expr {
    let Some(mut count) = count_of_rows(negated) else {
        return Expr::Exists { subquery: Box::new(query), negated };
    };
    let SetExpr::Select(counting) = &mut *count.body else { return Expr::Subquery(Box::new(count)) };
    // A query in FROM could not refer to columns of the queries around it, so the rows are counted in place where that is the same.
    if let SetExpr::Select(select) = &mut *query.body
        && has_a_row_for_each(select)
        && query.limit_clause.is_none()
        && query.fetch.is_none()
    {
        select.projection = std::mem::take(&mut counting.projection);
        query.order_by = None;
        return Expr::Subquery(Box::new(query));
    }
    if let Some(TableWithJoins { relation: TableFactor::Derived { subquery, .. }, .. }) =
        counting.from.first_mut()
    {
        **subquery = query;
    }
    Expr::Subquery(Box::new(count))
}

/// A query whose number of rows is compared with 0.
fn count_of_rows(is_none: bool) -> Option<Query> {
    let comparison = if is_none { "=" } else { ">" };
    let text = format!("SELECT count(*) {comparison} 0 FROM (SELECT 1) AS counted");
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(&text).ok()?;
    parser.parse_query().ok().map(|query| *query)
}

/// Whether a SELECT has a row for each row of its tables that passes its condition.
fn has_a_row_for_each(select: &Select) -> bool {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let are_plain = select.projection.iter().all(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            matches!(expr, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        }
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
        _ => false,
    });
    are_plain && !is_grouped && select.distinct.is_none() && select.top.is_none() && select.having.is_none()
}
