//! Arguments: tables, then the columns of the key.

use datafusion::{
    common::{Result, ScalarValue, plan_err},
    logical_expr::Expr,
    sql::sqlparser::ast::{self, FunctionArg, FunctionArgExpr, TableFactor, Value},
};

use super::operation::Operation;

/// The arguments of a function.
#[derive(Debug)]
pub(super) struct Arguments {
    /// Names of tables, or queries.
    pub(super) tables: Vec<String>,
    /// Columns that all of them have.
    pub(super) keys: Vec<String>,
}

impl Arguments {
    pub(super) fn new(operation: Operation, exprs: &[Expr]) -> Result<Arguments> {
        let text = |expr: &Expr| match expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Ok(text.clone()),
            other => plan_err!(
                "{}: expected names of tables and columns, or queries in parentheses, found {other}",
                operation.name()
            ),
        };
        let mut tables: Vec<String> = exprs.iter().map(text).collect::<Result<_>>()?;
        let count = operation.tables();
        if tables.len() < count {
            let expected = if count == 2 { "two tables" } else { "a table" };
            let found = tables.len();
            return plan_err!(
                "{}: expected {expected}, and the columns of the key, found {found} arguments",
                operation.name()
            );
        }
        let keys = tables.split_off(count);
        Ok(Arguments { tables, keys })
    }
}

/// Names and queries among the arguments of a call become texts: DataFusion would look for columns of these names.
pub(crate) fn quote_names(factor: &mut TableFactor) {
    let TableFactor::Table { name, args: Some(arguments), .. } = factor else { return };
    let function = name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.as_str());
    if function.and_then(Operation::by_name).is_none() {
        return;
    }
    for argument in &mut arguments.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { continue };
        let text = match expr {
            ast::Expr::Identifier(name) => name.value.clone(),
            ast::Expr::CompoundIdentifier(_) | ast::Expr::Subquery(_) => expr.to_string(),
            _ => continue,
        };
        *expr = ast::Expr::Value(Value::SingleQuotedString(text).into());
    }
}
