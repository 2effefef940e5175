//! A column of `JOIN … USING (column)` in WHERE. It is one column in SQLite; the planner knows two there, and calls its name
//! ambiguous.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, TableFactor, VisitMut,
    VisitorMut,
};

/// Names in WHERE the table of each column that a join of this SELECT uses, if it is certain which has its value.
pub(super) fn with_its_table(select: &mut Select) {
    let (Some(condition), [from]) = (&mut select.selection, &select.from[..]) else { return };
    let mut columns: Vec<(Ident, Vec<Ident>)> = Vec::new();
    for (place, join) in from.joins.iter().enumerate() {
        // What stands to the left of a later join may be several tables.
        let left = (place == 0).then_some(&from.relation);
        for (column, table) in used(join, left) {
            if columns.iter().all(|(other, _)| *other != column) {
                columns.push((column, table));
            }
        }
    }
    if !columns.is_empty() {
        _ = condition.visit(&mut Columns { columns, depth: 0 });
    }
}

/// The columns that a join uses, each with a table that has its value.
fn used(join: &Join, left: Option<&TableFactor>) -> Vec<(Ident, Vec<Ident>)> {
    let (constraint, table) = match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint) => (constraint, Some(&join.relation)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (constraint, left),
        _ => return Vec::new(),
    };
    let (JoinConstraint::Using(columns), Some(table)) = (constraint, table.and_then(name)) else {
        return Vec::new();
    };
    columns.iter().filter_map(single).map(|column| (column, table.clone())).collect()
}

fn single(name: &ObjectName) -> Option<Ident> {
    match &name.0[..] {
        [part] => part.as_ident().cloned(),
        _ => None,
    }
}

/// How columns of a table are named.
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
    /// Of queries inside, whose columns are their own.
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
