//! What SQLite and Perfetto write in other words inside of a query: `GLOB`, `REGEXP`, types of casts, `iif`, `max` of several
//! values, `trace_start()`.

use std::ops::ControlFlow;

use datafusion::{
    error::Result,
    execution::SessionState,
    sql::{
        parser::Statement,
        sqlparser::{
            ast::{
                BinaryOperator, CaseWhen, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
                FunctionArguments, Ident, ObjectName, Value, VisitMut, VisitorMut,
                helpers::attached_token::AttachedToken,
            },
            dialect::GenericDialect,
            tokenizer::{Token, Tokenizer},
        },
    },
};

/// Parses a statement. If it cannot be parsed, once more with `GLOB` as an operator, which the parser knows by the name of
/// another one.
pub(crate) fn parsed(state: &SessionState, query: &str) -> Result<Statement> {
    let dialect = state.config().options().sql_parser.dialect;
    state.sql_to_statement(query, &dialect).or_else(|error| {
        let with_operator = with_glob(query).and_then(|query| state.sql_to_statement(&query, &dialect).ok());
        with_operator.ok_or(error)
    })
}

/// The query with `SIMILAR TO 'text' ESCAPE 'GLOB'` for each `GLOB 'text'`, which nobody writes for another purpose; `None` if there
/// is none. A GLOB before anything else may be a name, and is left.
fn with_glob(query: &str) -> Option<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, query).with_unescape(false).tokenize().ok()?;
    let is_glob = |token: &Token| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(GLOB));
    let (mut text, mut is_after_glob, mut has_glob) = (String::new(), false, false);
    for (place, token) in tokens.iter().enumerate() {
        let is_pattern = is_after_glob && matches!(token, Token::SingleQuotedString(_));
        let next = || tokens[place + 1..].iter().find(|token| !matches!(token, Token::Whitespace(_)));
        if is_glob(token) && matches!(next(), Some(Token::SingleQuotedString(_))) {
            (is_after_glob, has_glob) = (true, true);
            text.push_str("SIMILAR TO");
            continue;
        }
        text.push_str(&token.to_string());
        if is_pattern {
            text.push_str(&format!(" ESCAPE '{GLOB}'"));
        }
        is_after_glob &= matches!(token, Token::Whitespace(_));
    }
    has_glob.then_some(text)
}

const GLOB: &str = "GLOB";

/// Nanoseconds, as Perfetto's tables have them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) start: i64,
    pub(crate) end: i64,
}

/// Replaces them in a statement; `trace_start()` and the like only if the bounds of the trace are given.
pub(crate) fn in_our_words(statement: &mut Statement, bounds: Option<Bounds>) {
    match statement {
        Statement::Statement(statement) => _ = statement.visit(&mut Words { bounds }),
        Statement::Explain(explain) => in_our_words(&mut explain.statement, bounds),
        _ => {}
    }
}

struct Words {
    bounds: Option<Bounds>,
}

impl VisitorMut for Words {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { data_type, .. } => in_our_type(data_type),
            Expr::RLike { .. } => matched(expr),
            Expr::SimilarTo { .. } => globbed(expr),
            Expr::Function(function) => {
                let other =
                    self.bound(function).or_else(|| conditional(function)).or_else(|| of_several(function));
                if let Some(other) = other {
                    *expr = other;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// INT is of 64 bits, and so are LONG and the like.
fn in_our_type(ty: &mut DataType) {
    let is_wide = match ty {
        DataType::Int(None) | DataType::Integer(None) | DataType::Int64 | DataType::UInt32 => true,
        DataType::Custom(name, _) => {
            let name = name.to_string().to_ascii_uppercase();
            ["LONG", "INT64", "UINT", "UINT32", "DURATION", "TIMESTAMP_NS", "JOINID"].contains(&name.as_str())
        }
        _ => false,
    };
    if is_wide {
        *ty = DataType::BigInt(None);
    }
}

/// `a REGEXP 'b'` as a match of a regular expression.
fn matched(expr: &mut Expr) {
    let Expr::RLike { negated, expr: value, pattern, .. } = expr else { return };
    *expr = regex(*negated, value.clone(), pattern.clone());
}

/// `a GLOB 'b*'` as LIKE, or as a match of a regular expression if it has classes.
fn globbed(expr: &mut Expr) {
    let Expr::SimilarTo { negated, expr: value, pattern, escape_char: Some(mark) } = expr else { return };
    let (Expr::Value(pattern), true) =
        (pattern.as_ref(), mark.value == Value::SingleQuotedString(GLOB.into()))
    else {
        return;
    };
    let Value::SingleQuotedString(glob) = &pattern.value else { return };
    let (negated, value) = (*negated, value.clone());
    *expr = match like_of_glob(glob) {
        Some(like) => {
            let pattern = Box::new(text(like));
            Expr::Like { negated, any: false, expr: value, pattern, escape_char: None }
        }
        None => regex(negated, value, Box::new(text(regex_of_glob(glob)))),
    };
}

fn regex(negated: bool, left: Box<Expr>, right: Box<Expr>) -> Expr {
    let op = if negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    Expr::BinaryOp { left, op, right }
}

fn text(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

/// `None` if it has classes of characters.
fn like_of_glob(glob: &str) -> Option<String> {
    let mut like = String::new();
    for character in glob.chars() {
        match character {
            '[' => return None,
            '*' => like.push('%'),
            '?' => like.push('_'),
            '%' | '_' | '\\' => like.extend(['\\', character]),
            other => like.push(other),
        }
    }
    Some(like)
}

/// A `]` or `^` at the begin of a class is one of its characters or negates it, as SQLite has it.
fn regex_of_glob(glob: &str) -> String {
    let mut regex = String::from("(?s)^");
    let mut rest = glob.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => match class(rest.as_str()) {
                Some((class, after)) => {
                    regex.push_str(&class);
                    rest = after.chars();
                }
                // SQLite: one without an end matches nothing.
                None => return "[^\\s\\S]".into(),
            },
            other => regex.push_str(&literal(other)),
        }
    }
    regex + "$"
}

/// What comes after `[`, as a class of a regular expression, and the rest behind it.
fn class(glob: &str) -> Option<(String, &str)> {
    let (is_negated, begin) = match glob.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, glob),
    };
    let first = begin.chars().next()?.len_utf8();
    let end = first + begin[first..].find(']')?;
    let mut class = String::from(if is_negated { "[^" } else { "[" });
    let (inside, mut after_first) = (&begin[..end], false);
    let last = inside.chars().count() - 1;
    for (place, character) in inside.chars().enumerate() {
        if character == '-' && after_first && place < last {
            class.push('-')
        } else {
            class.push_str(&literal(character))
        }
        after_first = true;
    }
    class.push(']');
    Some((class, &begin[end + 1..]))
}

/// A character that means itself.
fn literal(character: char) -> String {
    if character.is_alphanumeric() || character == ' ' || !character.is_ascii() {
        character.to_string()
    } else {
        format!("\\x{{{:x}}}", u32::from(character))
    }
}

/// The name of a function without a schema, and its arguments, if these have no names.
fn call(function: &Function) -> Option<(String, Vec<Expr>)> {
    let [name] = &function.name.0[..] else { return None };
    let name = name.as_ident()?.value.to_ascii_lowercase();
    let FunctionArguments::List(list) = &function.args else { return None };
    let unnamed = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    Some((name, list.args.iter().map(unnamed).collect::<Option<_>>()?))
}

fn case(condition: Expr, result: Expr, other: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: Some(Box::new(other)),
    }
}

/// `iif(condition, one, other)` as CASE.
fn conditional(function: &Function) -> Option<Expr> {
    let (name, arguments) = call(function)?;
    let [condition, one, other] = <[Expr; 3]>::try_from(arguments).ok()?;
    (name == "iif").then(|| case(condition, one, other))
}

/// `max(a, b)`: the largest, or NULL if one is NULL.
fn of_several(function: &Function) -> Option<Expr> {
    let (name, arguments) = call(function)?;
    let ours = match name.as_str() {
        "max" => "greatest",
        "min" => "least",
        _ => return None,
    };
    if arguments.len() < 2 || function.over.is_some() || function.filter.is_some() {
        return None;
    }
    let are_null = arguments.into_iter().map(|argument| Expr::IsNull(Box::new(argument)));
    let is_null = are_null.reduce(|one, other| Expr::BinaryOp {
        left: Box::new(one),
        op: BinaryOperator::Or,
        right: Box::new(other),
    })?;
    let ours = Function { name: ObjectName::from(vec![Ident::new(ours)]), ..function.clone() };
    Some(case(is_null, Expr::Value(Value::Null.into()), Expr::Function(ours)))
}

impl Words {
    /// `trace_start()`, `trace_end()` and `trace_dur()`.
    fn bound(&self, function: &Function) -> Option<Expr> {
        let Bounds { start, end } = self.bounds?;
        let (name, arguments) = call(function)?;
        let number = match name.as_str() {
            "trace_start" => start,
            "trace_end" => end,
            "trace_dur" => end - start,
            _ => return None,
        };
        arguments.is_empty().then(|| Expr::Value(Value::Number(number.to_string(), false).into()))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::{execution::SessionStateBuilder, prelude::SessionContext};

    use super::*;

    fn rewritten(query: &str) -> String {
        let state = SessionStateBuilder::new().build();
        let mut statement = parsed(&state, query).unwrap();
        in_our_words(&mut statement, Some(Bounds { start: 0, end: 70 }));
        statement.to_string()
    }

    #[test]
    fn operators_and_functions_of_sqlite_have_our_words() {
        for (query, expected) in [
            ("SELECT a GLOB 'b*_?%'", r"SELECT a LIKE 'b%\__\%'"),
            ("SELECT a not glob 'b*' AND c", "SELECT a NOT LIKE 'b%' AND c"),
            ("SELECT a GLOB '[a-c]x*.'", r"SELECT a ~ '(?s)^[a-c]x.*\x{2e}$'"),
            ("SELECT a NOT REGEXP 'b.*' OR a RLIKE 'c'", "SELECT a !~ 'b.*' OR a ~ 'c'"),
            ("SELECT a GLOB /* c */ 'b*' OR a RLIKE 'c*'", "SELECT a LIKE 'b%' OR a ~ 'c*'"),
            ("SELECT a SIMILAR TO 'b*' ESCAPE 'x'", "SELECT a SIMILAR TO 'b*' ESCAPE 'x'"),
            ("SELECT glob FROM t", "SELECT glob FROM t"),
            (
                "SELECT \"glob\", 'a GLOB' FROM t WHERE glob GLOB 'é''*'",
                "SELECT \"glob\", 'a GLOB' FROM t WHERE glob LIKE 'é''%'",
            ),
            (
                "SELECT CAST(a AS LONG), CAST(a AS INT), CAST(a AS STRING)",
                "SELECT CAST(a AS BIGINT), CAST(a AS BIGINT), CAST(a AS STRING)",
            ),
            ("SELECT trace_start(), TRACE_DUR() / 2, trace_end(1)", "SELECT 0, 70 / 2, trace_end(1)"),
            (
                "SELECT max(a, b), max(a), max(a, b) OVER ()",
                "SELECT CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE greatest(a, b) END, max(a), max(a, b) OVER ()",
            ),
            (
                "SELECT iif(a, max(b, 1), 2)",
                "SELECT CASE WHEN a THEN CASE WHEN b IS NULL OR 1 IS NULL THEN NULL ELSE greatest(b, 1) END ELSE 2 END",
            ),
        ] {
            assert_eq!(rewritten(query), expected, "{query}");
        }
        let state = SessionStateBuilder::new().build();
        let error = parsed(&state, "SELECT glob glob glob").unwrap_err().to_string();
        assert!(!error.to_ascii_lowercase().contains("similar"), "{error}");
    }

    /// As SQLite answers.
    #[tokio::test]
    async fn globs_match_what_they_match_in_sqlite() {
        let context = SessionContext::new();
        for (text, glob, expected) in [
            ("abc", "a*", true),
            ("abc", "A*", false),
            ("abc", "a?c", true),
            ("abc", "a?", false),
            ("a\nc", "a*c", true),
            ("a%c", "a%c", true),
            ("abc", "a%c", false),
            (r"a\c", r"a\c", true),
            ("abc", "a[a-c]c", true),
            ("a-c", "a[a-]c", true),
            ("abc", "a[^b]c", false),
            ("a]c", "a[]]c", true),
            ("a.c", "[a].c", true),
            ("abc", "[a].c", false),
            ("a[c", "a[c", false),
            ("", "*", true),
        ] {
            let query = format!("SELECT '{text}' GLOB '{glob}' AS found");
            let mut statement = parsed(&context.state(), &query).unwrap();
            in_our_words(&mut statement, None);
            let plan = context.state().statement_to_plan(statement).await.unwrap();
            let rows = context.execute_logical_plan(plan).await.unwrap().collect().await.unwrap();
            let found = arrow::array::AsArray::as_boolean(rows[0].column(0)).value(0);
            assert_eq!(found, expected, "{query}");
        }
    }
}
