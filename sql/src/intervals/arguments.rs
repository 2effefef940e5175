//! Reads the arguments of a call: tables, followed by the columns of the key.

use datafusion::{
    common::{Result, plan_err},
    sql::{
        parser::DFParser,
        sqlparser::ast::{
            Expr, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments, Ident, ObjectName,
            Query, SetExpr, Statement, TableFactor, TableFunctionArgs, Value,
        },
    },
};

use super::operation::Operation;

/// A call of a function over intervals.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) operation: Operation,
    /// Queries. If one is a table, its name is given, too.
    pub(super) inputs: Vec<(Option<String>, Box<Query>)>,
    /// The columns of the key, which all inputs have.
    pub(super) keys: Vec<String>,
}

/// The function over intervals that a relation in FROM calls, if it is such a call.
pub(super) fn operation(factor: &TableFactor) -> Option<Operation> {
    let TableFactor::Table { name, args: Some(_), .. } = factor else { return None };
    let [name] = name.0.as_slice() else { return None };
    name.as_ident().and_then(|name| Operation::by_name(&name.value))
}

/// Replaces the tables among the arguments of a call by queries with the names of the tables. Otherwise DataFusion
/// would look for columns with these names, and would not look up tables that only functions name. Returns false if it
/// is no call of a function over intervals.
pub(crate) fn tables_as_queries(factor: &mut TableFactor) -> bool {
    let Some(operation) = operation(factor) else { return false };
    let TableFactor::Table { args: Some(arguments), .. } = factor else { return false };
    for argument in arguments.args.iter_mut().take(operation.tables()) {
        if let Some(query) = as_query(argument) {
            *argument = query;
        }
    }
    true
}

/// `spans` becomes `spans => (SELECT * FROM spans)`; a call of a function likewise. `None` if the argument is a query
/// without a name.
fn as_query(argument: &FunctionArg) -> Option<FunctionArg> {
    let (given, expr) = match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => (Some(name.clone()), expr),
        _ => return None,
    };
    let (name, query) = match expr {
        Expr::Identifier(name) => (name.clone(), all_of(ObjectName::from(vec![name.clone()]), None)?),
        Expr::CompoundIdentifier(parts) => {
            (parts.last()?.clone(), all_of(ObjectName::from(parts.clone()), None)?)
        }
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(name) => {
                let name = Ident::with_quote('"', name);
                (name.clone(), all_of(ObjectName::from(vec![name]), None)?)
            }
            _ => return None,
        },
        Expr::Function(call) => {
            let FunctionArguments::List(list) = &call.args else { return None };
            let args = TableFunctionArgs { args: list.args.clone(), settings: None };
            (call.name.0.last()?.as_ident()?.clone(), all_of(call.name.clone(), Some(args))?)
        }
        Expr::Subquery(query) => (given.clone()?, query.clone()),
        _ => return None,
    };
    Some(FunctionArg::Named {
        name: given.unwrap_or(name),
        arg: FunctionArgExpr::Expr(Expr::Subquery(query)),
        operator: FunctionArgOperator::RightArrow,
    })
}

/// `SELECT * FROM name`, or from the result of a function call.
fn all_of(of: ObjectName, arguments: Option<TableFunctionArgs>) -> Option<Box<Query>> {
    let statement = DFParser::parse_sql("SELECT * FROM t").ok()?.pop_front()?;
    let datafusion::sql::parser::Statement::Statement(statement) = statement else { return None };
    let Statement::Query(mut query) = *statement else { return None };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let TableFactor::Table { name, args, .. } = &mut select.from.first_mut()?.relation else { return None };
    (*name, *args) = (of, arguments);
    Some(query)
}

impl Call {
    /// Reads arguments that were changed by [`tables_as_queries`].
    pub(super) fn new(operation: Operation, arguments: Vec<FunctionArg>) -> Result<Call> {
        let function = operation.name();
        let (count, found) = (operation.tables(), arguments.len());
        if found < count {
            let expected = if count == 2 { "two tables" } else { "a table" };
            return plan_err!(
                "{function}: expected {expected}, and the columns of the key, found {found} arguments"
            );
        }
        let (mut inputs, mut keys) = (Vec::new(), Vec::new());
        for argument in arguments {
            let is_table = inputs.len() < count;
            match argument {
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(Expr::Subquery(query)), .. }
                    if is_table =>
                {
                    inputs.push((Some(name.value), query));
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query))) if is_table => {
                    inputs.push((None, query));
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(key))) if !is_table => {
                    keys.push(key.value);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(key))) if !is_table => match key.value
                {
                    Value::SingleQuotedString(key) => keys.push(key),
                    other => return unexpected(function, other),
                },
                other => return unexpected(function, other),
            }
        }
        Ok(Call { operation, inputs, keys })
    }
}

fn unexpected<T>(function: &str, found: impl std::fmt::Display) -> Result<T> {
    plan_err!(
        "{function}: expected names of tables, or queries in parentheses, and then names of columns of the key, found {found}"
    )
}
