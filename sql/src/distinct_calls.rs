//! Tells calls of one table function with different arguments from each other.
//!
//! DataFusion names the result of each call in a plan by the function alone: `states()`. So subqueries with different calls are
//! equal to it, and of equal subqueries in a statement it evaluates only one. Therefore a call with arguments gets an alias that
//! tells them: `states('thread', 15) AS t` becomes `(states('thread', 15) AS "states('thread', 15)") AS t`.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::ControlFlow,
};

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{Ident, TableAlias, TableFactor, TableWithJoins, VisitorMut},
};

use crate::visited::visit;

/// A longer alias is shortened, and ends with a number that is made of the whole call: arguments may be long queries.
const LONGEST: usize = 80;

/// Names the calls in a statement.
pub(crate) fn name(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => _ = visit(statement.as_mut(), &mut Calls),
        Statement::Explain(explain) => name(&mut explain.statement),
        _ => {}
    }
}

struct Calls;

impl VisitorMut for Calls {
    type Break = ();

    // Afterwards, so that the call inside of a changed one is not visited again.
    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { args: Some(args), alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        if args.args.is_empty() {
            return ControlFlow::Continue(());
        }
        let outer = alias.take();
        let call = alias_of(&factor.to_string());
        if let TableFactor::Table { alias, .. } = factor {
            let name = Ident::with_quote('"', call);
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        if outer.is_some() {
            let relation = factor.clone();
            let table_with_joins = Box::new(TableWithJoins { relation, joins: Vec::new() });
            *factor = TableFactor::NestedJoin { table_with_joins, alias: outer };
        }
        ControlFlow::Continue(())
    }
}

fn alias_of(call: &str) -> String {
    if call.len() <= LONGEST {
        return call.to_string();
    }
    let mut hasher = DefaultHasher::new();
    call.hash(&mut hasher);
    let short: String = call.chars().take(LONGEST / 2).collect();
    format!("{short}... {:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn named(query: &str) -> String {
        let mut statement = DFParser::parse_sql(query).unwrap().remove(0).unwrap();
        name(&mut statement);
        statement.to_string()
    }

    #[test]
    fn a_call_has_its_arguments_in_its_name() {
        assert_eq!(
            named("SELECT * FROM f('a', 1) JOIN f('a', 2) AS t (x) ON true"),
            "SELECT * FROM f('a', 1) AS \"f('a', 1)\" JOIN (f('a', 2) AS \"f('a', 2)\") AS t (x) ON true"
        );
        for unchanged in ["SELECT * FROM f()", "SELECT f(1) FROM f() AS t", "SELECT 1"] {
            assert_eq!(named(unchanged), unchanged);
        }
        let nested = named("EXPLAIN SELECT (SELECT g FROM f((SELECT * FROM h(1))))");
        assert!(nested.contains("FROM h(1) AS \"h(1)\")) AS \"f((SELECT * FROM h(1) AS "), "{nested}");
    }

    #[test]
    fn a_long_call_has_a_short_name_of_its_own() {
        let [a, b] = ["a", "b"].map(|end| alias_of(&format!("f('{}{end}')", "é".repeat(100))));
        let begin = |name: &str| name.chars().take(LONGEST / 2).collect::<String>();
        assert!(a.chars().count() < LONGEST && a != b && begin(&a) == begin(&b), "{a} {b}");
    }
}
