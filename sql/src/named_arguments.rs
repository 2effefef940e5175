//! Arguments of table functions by name: `states(thread => 15)`.
//!
//! DataFusion passes arguments of table functions only by position. So each `name => value` becomes two arguments: the
//! name as a text, and the value. The functions of this project accept such pairs. Names of tables among the arguments
//! of functions over intervals become queries.

use std::ops::ControlFlow;

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, TableFactor, Value, VisitorMut},
};

use crate::{intervals, visited::visit};

/// Replaces the named arguments in a statement.
pub(crate) fn by_place(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => _ = visit(statement.as_mut(), &mut Arguments),
        Statement::Explain(explain) => by_place(&mut explain.statement),
        _ => {}
    }
}

struct Arguments;

impl VisitorMut for Arguments {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        // The results of this replacement are visited afterwards.
        if !intervals::tables_as_queries(factor)
            && let TableFactor::Table { args: Some(arguments), .. } = factor
        {
            let pairs = std::mem::take(&mut arguments.args).into_iter().flat_map(pair);
            arguments.args = pairs.collect();
        }
        ControlFlow::Continue(())
    }
}

fn pair(argument: FunctionArg) -> Vec<FunctionArg> {
    match argument {
        FunctionArg::Named { name: Ident { value: name, .. }, arg, .. } => {
            let name = Expr::Value(Value::SingleQuotedString(name).into());
            vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(name)), FunctionArg::Unnamed(arg)]
        }
        other => vec![other],
    }
}
