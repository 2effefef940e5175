//! Parameters of a query: `$thread`; or `?`, as database drivers write them. The first `?` is `$1`.

use std::{borrow::Cow, collections::BTreeMap, ops::ControlFlow};

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{Expr, UnaryOperator, Value, VisitorMut},
};

use crate::{Error, nearest, visited::visit};

/// Names (without `$`) and values. A value that can be parsed as a number is a number. `NULL`, `TRUE` and `FALSE` have
/// their meaning in SQL. Any other value is a text, and so is a value in quotes: `'5'`.
#[derive(Clone, Debug, Default)]
pub struct Parameters(pub BTreeMap<String, String>);

impl Parameters {
    /// Replaces the parameters of a statement by their values.
    ///
    /// # Errors
    /// [`Query`](crate::ErrorKind::Query) when a parameter of the statement has no value.
    pub(crate) fn apply(&self, statement: &mut Statement) -> Result<(), Error> {
        match statement {
            Statement::Statement(statement) => {
                let mut places = Places { parameters: self, unknown: None };
                _ = visit(statement.as_mut(), &mut places);
                places.unknown.map_or(Ok(()), |name| Err(self.unknown(&name)))
            }
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

struct Places<'p> {
    parameters: &'p Parameters,
    /// The name of the parameter without a value that ended the visit.
    unknown: Option<String>,
}

impl VisitorMut for Places<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
        {
            match self.parameters.0.get(name.trim_start_matches('$')) {
                Some(text) => *expr = literal(text),
                None => {
                    self.unknown = Some(name.clone());
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Replaces each `?` that is not in quotes or comments by `$1`, `$2` and so on.
pub(crate) fn numbered(query: &str) -> Cow<'_, str> {
    if !query.contains('?') {
        return query.into();
    }
    let (mut text, mut count) = (String::with_capacity(query.len() + 8), 0);
    let mut rest = query;
    while let Some(at) = rest.find(['?', '\'', '"', '-', '/']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let first = &from[..1];
        let end = match first {
            "'" | "\"" => Some(first),
            "-" if from.starts_with("--") => Some("\n"),
            "/" if from.starts_with("/*") => Some("*/"),
            _ => None,
        };
        let length = match end {
            // If a quote is doubled, the second one begins another text here, with the same result.
            Some(end) => {
                let begin = if end.len() == 1 && end != "\n" { 1 } else { 2 };
                from[begin..].find(end).map_or(from.len(), |at| begin + at + end.len())
            }
            None => 1,
        };
        if first == "?" {
            count += 1;
            text.push_str(&format!("${count}"));
        } else {
            text.push_str(&from[..length]);
        }
        rest = &from[length..];
    }
    text.push_str(rest);
    text.into()
}

fn literal(text: &str) -> Expr {
    if let Some(quoted) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Expr::Value(Value::SingleQuotedString(quoted.replace("''", "'")).into());
    }
    match text {
        "NULL" => return Expr::Value(Value::Null.into()),
        "TRUE" | "FALSE" => return Expr::Value(Value::Boolean(text == "TRUE").into()),
        _ => {}
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_marks_are_numbered_but_not_those_in_texts_and_comments() {
        let query = "SELECT ?, '?''?', \"?\", 1 - ?/2 /* ? */ -- ?\n FROM t WHERE a = ?-1 AND b = '?";
        let expected = "SELECT $1, '?''?', \"?\", 1 - $2/2 /* ? */ -- ?\n FROM t WHERE a = $3-1 AND b = '?";
        assert_eq!(numbered(query), expected);
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }
}
