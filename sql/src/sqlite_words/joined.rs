//! Supports a column of `JOIN … USING (column)` in WHERE. In SQLite it is one column. DataFusion's planner has two
//! columns there, and reports that the name is ambiguous.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, TableFactor, VisitorMut,
};

use crate::visited::visit;

/// Adds the table to such columns in WHERE, if it is certain which table has the value.
pub(super) fn with_its_table(select: &mut Select) {
    let (Some(condition), [from]) = (&mut select.selection, &select.from[..]) else { return };
    // For each column, the table that has its value; `None` if that is not certain.
    let mut columns: Vec<(Ident, Option<Vec<Ident>>)> = Vec::new();
    for (place, join) in from.joins.iter().enumerate() {
        // The left side of a later join may be several tables.
        let left = (place == 0).then_some(&from.relation);
        for (column, table, has_left_rows) in used(join, left) {
            match columns.iter_mut().find(|(other, _)| *other == column) {
                // The value is in an earlier table, unless this join adds rows that the earlier tables do not have.
                Some(_) if has_left_rows => {}
                Some((_, earlier)) => *earlier = None,
                None => columns.push((column, table)),
            }
        }
    }
    let certain = |(column, table): (Ident, Option<Vec<Ident>>)| Some((column, table?));
    let columns: Vec<_> = columns.into_iter().filter_map(certain).collect();
    if !columns.is_empty() {
        _ = visit(condition, &mut Columns { columns, depth: 0 });
    }
}

/// The columns that a join uses. With each: a table that has its value in all rows, and whether all rows have a row of
/// the left side.
fn used(join: &Join, left: Option<&TableFactor>) -> Vec<(Ident, Option<Vec<Ident>>, bool)> {
    let (constraint, table, has_left_rows) = match &join.join_operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (constraint, Some(&join.relation), true)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (constraint, left, true),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (constraint, Some(&join.relation), false)
        }
        JoinOperator::FullOuter(constraint) => (constraint, None, false),
        _ => return Vec::new(),
    };
    let JoinConstraint::Using(columns) = constraint else { return Vec::new() };
    let table = table.and_then(name);
    columns.iter().filter_map(single).map(|column| (column, table.clone(), has_left_rows)).collect()
}

fn single(name: &ObjectName) -> Option<Ident> {
    match &name.0[..] {
        [part] => part.as_ident().cloned(),
        _ => None,
    }
}

/// The qualifier of the columns of a table.
fn name(table: &TableFactor) -> Option<Vec<Ident>> {
    match table {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(vec![alias.name.clone()])
        }
        TableFactor::Table { name, args: None, .. } => {
            name.0.iter().map(|part| part.as_ident().cloned()).collect()
        }
        _ => None,
    }
}

struct Columns {
    columns: Vec<(Ident, Vec<Ident>)>,
    /// The nesting depth of queries. Queries inside have their own columns.
    depth: usize,
}

impl VisitorMut for Columns {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(found) = expr
            && let Some((column, table)) = self.columns.iter().find(|(column, _)| column == found)
        {
            let names = table.iter().chain([column]).cloned().collect();
            *expr = Expr::CompoundIdentifier(names);
        }
        ControlFlow::Continue(())
    }
}
