//! Aggregates of SQLite: `group_concat(x, separator)` and `total(x)`.

use datafusion::sql::sqlparser::ast::{
    DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Value,
};

use super::{as_type, call, function, text};

/// The same by functions of DataFusion; `None` if it is another function.
pub(super) fn of_sqlite(aggregate: &Function) -> Option<Expr> {
    let (name, arguments) = call(aggregate)?;
    let renamed = |name: &str, arguments: Vec<Expr>| {
        let mut aggregate = aggregate.clone();
        aggregate.name = ObjectName::from(vec![Ident::new(name)]);
        if let FunctionArguments::List(list) = &mut aggregate.args {
            let unnamed = |argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
            list.args = arguments.into_iter().map(unnamed).collect();
        }
        Expr::Function(aggregate)
    };
    match (name.as_str(), <[Expr; 1]>::try_from(arguments)) {
        ("total", Ok([value])) => {
            let sum = renamed("sum", vec![as_type(value, DataType::Double(ExactNumberInfo::None))]);
            let zero = Expr::Value(Value::Number("0.0".into(), false).into());
            Some(function("coalesce", vec![sum, zero]))
        }
        ("group_concat", Ok([value])) => Some(renamed("string_agg", vec![as_text(value), text(",".into())])),
        ("group_concat", Err(arguments)) => {
            let [value, separator] = <[Expr; 2]>::try_from(arguments).ok()?;
            Some(renamed("string_agg", vec![as_text(value), separator]))
        }
        _ => None,
    }
}

fn as_text(value: Expr) -> Expr {
    as_type(value, DataType::Varchar(None))
}
