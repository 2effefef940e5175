//! Parameters of a query: `$thread`.

use std::{collections::BTreeMap, ops::ControlFlow};

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{Expr, UnaryOperator, Value, VisitMut, VisitorMut},
};

use crate::{Error, nearest};

/// Names (without `$`) and values. A value that can be parsed as a number is a number; any other is a text.
#[derive(Clone, Debug, Default)]
pub struct Parameters(pub BTreeMap<String, String>);

impl Parameters {
    /// Replaces the parameters of a statement by their values.
    ///
    /// # Errors
    /// [`Query`](crate::ErrorKind::Query) when a parameter of the statement has no value.
    pub(crate) fn apply(&self, statement: &mut Statement) -> Result<(), Error> {
        match statement {
            Statement::Statement(statement) => match VisitMut::visit(statement.as_mut(), &mut Places(self)) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(name) => Err(self.unknown(&name)),
            },
            Statement::Explain(explain) => self.apply(&mut explain.statement),
            _ => Ok(()),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let near = nearest(name.trim_start_matches('$'), self.0.keys().map(String::as_str));
        let known =
            if near.is_empty() { "there are none".into() } else { format!("nearest: {}", near.join(", ")) };
        Error::unknown(format!("expected a parameter that has a value, found {name}; {known}"))
    }
}

struct Places<'p>(&'p Parameters);

impl VisitorMut for Places<'_> {
    /// The parameter without a value.
    type Break = String;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<String> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
        {
            match self.0.0.get(name.trim_start_matches('$')) {
                Some(text) => *expr = literal(text),
                None => return ControlFlow::Break(name.clone()),
            }
        }
        ControlFlow::Continue(())
    }
}

fn literal(text: &str) -> Expr {
    let number = |text: &str| Expr::Value(Value::Number(text.to_string(), false).into());
    let is_number =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
    match text.strip_prefix('-') {
        Some(rest) if is_number(rest) => {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(rest)) }
        }
        None if is_number(text) => number(text),
        _ => Expr::Value(Value::SingleQuotedString(text.to_string()).into()),
    }
}
