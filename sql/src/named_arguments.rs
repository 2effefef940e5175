//! Arguments of table functions by name: `states(thread => 15)`.
//!
//! DataFusion passes arguments of table functions by place only. Each `name => value` becomes two of them, the name as a text
//! and the value; the functions of this project take such pairs. Names of tables among the arguments of functions over
//! intervals become queries. `iif` becomes CASE, and INT in a cast BIGINT, as Perfetto's SQL has them.

use std::ops::ControlFlow;

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{
        CaseWhen, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, TableFactor, Value,
        VisitMut, VisitorMut, helpers::attached_token::AttachedToken,
    },
};

use crate::intervals;

/// Replaces named arguments in a statement.
pub(crate) fn by_place(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => _ = statement.visit(&mut Arguments),
        Statement::Explain(explain) => by_place(&mut explain.statement),
        _ => {}
    }
}

struct Arguments;

impl VisitorMut for Arguments {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(case) = conditional(expr) {
            *expr = case;
        }
        if let Expr::Cast { data_type: ty @ (DataType::Int(None) | DataType::Integer(None)), .. } = expr {
            *ty = DataType::BigInt(None);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        // What these become is visited after this.
        if !intervals::tables_as_queries(factor)
            && let TableFactor::Table { args: Some(arguments), .. } = factor
        {
            let pairs = std::mem::take(&mut arguments.args).into_iter().flat_map(pair);
            arguments.args = pairs.collect();
        }
        ControlFlow::Continue(())
    }
}

/// `iif(condition, one, other)`, which Perfetto's SQL has, as CASE.
fn conditional(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [name] = &function.name.0[..] else { return None };
    let [condition, one, other] = &list.args[..] else { return None };
    name.as_ident().filter(|name| name.value.eq_ignore_ascii_case("iif"))?;
    let unnamed = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let [condition, result, other] = [unnamed(condition)?, unnamed(one)?, unnamed(other)?];
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: Some(Box::new(other)),
    })
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
