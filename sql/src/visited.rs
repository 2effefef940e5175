//! Walks over the tree of a statement.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, VisitMut, VisitorMut,
};

/// Visits a part of a statement, and all that is in it, until the visitor breaks.
///
/// sqlparser's walk is generic in the visitor: 370 kB of machine code each. Here it is made once.
pub(crate) fn visit(part: &mut impl VisitMut, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()> {
    part.visit(&mut Whoever(visitor))
}

struct Whoever<'v>(&'v mut dyn VisitorMut<Break = ()>);

macro_rules! forward {
    ($($method:ident($part:ident);)*) => {
        $(fn $method(&mut self, part: &mut $part) -> ControlFlow<()> {
            self.0.$method(part)
        })*
    };
}

impl VisitorMut for Whoever<'_> {
    type Break = ();

    forward! {
        pre_visit_query(Query);
        post_visit_query(Query);
        pre_visit_select(Select);
        post_visit_select(Select);
        pre_visit_relation(ObjectName);
        post_visit_relation(ObjectName);
        pre_visit_table_factor(TableFactor);
        post_visit_table_factor(TableFactor);
        pre_visit_expr(Expr);
        post_visit_expr(Expr);
        pre_visit_statement(Statement);
        post_visit_statement(Statement);
        pre_visit_value(ValueWithSpan);
        post_visit_value(ValueWithSpan);
    }
}
