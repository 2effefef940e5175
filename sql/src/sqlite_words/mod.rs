//! Translates words that SQLite and Perfetto use inside of queries: `GLOB`, `REGEXP`, types of casts, `iif`, `max` of
//! several values, `group_concat`, `total`, `trace_start()`, a percentile divided by an integer, numbers as conditions, EXISTS as a
//! value, and a column of `USING` in WHERE.

mod aggregates;
mod conditions;
mod exists;
mod glob;
mod headers;
mod joined;

use std::ops::ControlFlow;

use datafusion::{
    error::{DataFusionError, Result},
    execution::SessionState,
    sql::{
        parser::Statement,
        sqlparser::{
            ast::{
                BinaryOperator, CaseWhen, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
                FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, Select, Value,
                VisitorMut, helpers::attached_token::AttachedToken,
            },
            parser::ParserError,
        },
    },
};

use crate::{functions::TYPED, query_depth, visited::visit};
use glob::{GLOB, like_of_glob, regex_of_glob, with_glob};
use headers::Headers;

/// Parses a statement. If that fails, parses it again with `GLOB` replaced by an operator that the parser knows. A
/// statement whose plan would be too deep is an error.
pub(crate) fn parsed(state: &SessionState, query: &str) -> Result<Statement> {
    query_depth::parsed(query, || parsed_with_glob(state, query))
}

fn parsed_with_glob(state: &SessionState, query: &str) -> Result<Statement> {
    let dialect = state.config().options().sql_parser.dialect;
    let error = match state.sql_to_statement(query, &dialect) {
        Ok(statement) => return Ok(statement),
        Err(error) => error,
    };
    let Some(query) = with_glob(query) else { return Err(error) };
    state.sql_to_statement(&query, &dialect).map_err(|of_rest| {
        let is_of_operator = ["SIMILAR", "ESCAPE"].iter().any(|word| of_rest.to_string().contains(word));
        if is_of_operator { error } else { without_place(of_rest) }
    })
}

/// The parser's error without its position, which refers to the changed text.
fn without_place(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::Diagnostic(_, inner) => without_place(*inner),
        DataFusionError::SQL(parser, trace) => match *parser {
            ParserError::ParserError(text) => {
                let text = text.split(" at Line: ").next().unwrap_or_default().to_string();
                DataFusionError::SQL(Box::new(ParserError::ParserError(text)), trace)
            }
            other => DataFusionError::SQL(Box::new(other), trace),
        },
        other => other,
    }
}

/// The bounds of the trace in nanoseconds, as in Perfetto's tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) start: i64,
    pub(crate) end: i64,
}

/// Translates these words in a statement. `trace_start()` and the like are replaced only if the bounds of the trace are
/// given.
pub(crate) fn in_our_words(statement: &mut Statement, bounds: Option<Bounds>) {
    match statement {
        Statement::Statement(statement) => {
            _ = visit(statement.as_mut(), &mut Words { bounds, headers: Headers::default() })
        }
        Statement::Explain(explain) => in_our_words(&mut explain.statement, bounds),
        _ => {}
    }
}

struct Words {
    bounds: Option<Bounds>,
    headers: Headers,
}

impl VisitorMut for Words {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.headers.begin(select);
        joined::with_its_table(select);
        exists::as_values(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        conditions::of_select(select);
        self.headers.end(select);
        ControlFlow::Continue(())
    }

    /// The expressions inside have been visited before; the replacement is not visited.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        conditions::of_expr(expr);
        match expr {
            Expr::Cast { data_type, .. } => {
                in_our_type(data_type);
                if !is_long_chain(expr) {
                    *expr = function(TYPED, vec![expr.clone()]);
                }
            }
            Expr::BinaryOp { left, op: BinaryOperator::Divide, .. } => with_fraction(left),
            Expr::RLike { .. } => matched(expr),
            Expr::SimilarTo { .. } => globbed(expr),
            Expr::Function(function) => {
                let other = self
                    .bound(function)
                    .or_else(|| conditional(function))
                    .or_else(|| of_several(function))
                    .or_else(|| aggregates::of_sqlite(function));
                if let Some(other) = other {
                    *expr = other;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// So many casts of casts have their types in the name. DataFusion computes the name of a function again for each one around it:
/// 200 of `1::INT::INT…` took 2.8 s.
const TYPED_CASTS: usize = 4;

/// Whether a cast is one of too many casts of casts.
fn is_long_chain(cast: &Expr) -> bool {
    let inner = |expr: &Expr| match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => Some((**expr).clone()),
        Expr::Function(function) => {
            call(function).filter(|(name, _)| name == TYPED).and_then(|(_, mut of)| of.pop())
        }
        _ => None,
    };
    let chain = std::iter::successors(inner(cast), inner).take(4 * TYPED_CASTS);
    chain.filter(|expr| matches!(expr, Expr::Cast { .. })).count() >= TYPED_CASTS
}

/// INT has 64 bits, and so do LONG and similar types.
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

/// In Perfetto, a percentile is a fraction. Ours is exact: for integers it is an integer, and a division would cut its
/// result.
fn with_fraction(divided: &mut Expr) {
    let Expr::Function(function) = &*divided else { return };
    if call(function).is_some_and(|(name, _)| name == "percentile") {
        *divided = as_type(divided.clone(), DataType::Double(ExactNumberInfo::None));
    }
}

/// A call of a function.
fn function(name: &str, arguments: Vec<Expr>) -> Expr {
    let args =
        arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn as_type(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// Translates `a REGEXP 'b'` to a match of a regular expression.
fn matched(expr: &mut Expr) {
    let Expr::RLike { negated, expr: value, pattern, .. } = expr else { return };
    *expr = regex(*negated, value.clone(), pattern.clone());
}

/// Translates `a GLOB 'b*'` to LIKE, or to a match of a regular expression if it has classes.
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

/// The name of a function without a schema, and its arguments; `None` if arguments have names.
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

/// Translates `iif(condition, one, other)` to CASE.
fn conditional(function: &Function) -> Option<Expr> {
    let (name, arguments) = call(function)?;
    let [condition, one, other] = <[Expr; 3]>::try_from(arguments).ok()?;
    (name == "iif").then(|| case(condition, one, other))
}

/// Translates `max(a, b)`: the largest value, or NULL if one is NULL. The result contains each argument twice. So it is
/// not done if many of these are nested.
fn of_several(function: &Function) -> Option<Expr> {
    let (name, mut arguments) = call(function)?;
    let ours = match name.as_str() {
        "max" => GREATEST,
        "min" => LEAST,
        _ => return None,
    };
    let is_one = arguments.len() >= 2 && function.over.is_none() && function.filter.is_none();
    if !is_one || visit(&mut arguments, &mut OfSeveral(MOST_INSIDE)).is_break() {
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

const GREATEST: &str = "greatest";
const LEAST: &str = "least";

/// Five levels of nesting, each of which doubles what is inside.
const MOST_INSIDE: usize = 32;

/// Counts the results of [`of_several`], and stops if there are too many.
struct OfSeveral(usize);

impl VisitorMut for OfSeveral {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if !call(function).is_some_and(|(name, _)| [GREATEST, LEAST].contains(&name.as_str())) {
            return ControlFlow::Continue(());
        }
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }
}

impl Words {
    /// The value of `trace_start()`, `trace_end()` or `trace_dur()`.
    fn bound(&self, function: &Function) -> Option<Expr> {
        let Bounds { start, end } = self.bounds?;
        let (name, arguments) = call(function)?;
        let number = match name.as_str() {
            "trace_start" => start,
            "trace_end" => end,
            "trace_dur" => end - start,
            _ => return None,
        };
        let number = Expr::Value(Value::Number(number.to_string(), false).into());
        // A bare number in ORDER BY would refer to a column, so it is cast.
        arguments.is_empty().then(|| as_type(number, DataType::BigInt(None)))
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
            ("SELECT a GLOB 'b*_?%'", r#"SELECT a LIKE 'b%\__\%' AS "a GLOB 'b*_?%'""#),
            (
                "SELECT 1 FROM t WHERE a not glob 'b*' AND c = 1",
                "SELECT 1 FROM t WHERE a NOT LIKE 'b%' AND c = 1",
            ),
            ("SELECT a GLOB '[a-cx]*.' AS b", r"SELECT a ~ '(?s)^[a-aa-cx-x].*\x{2e}$' AS b"),
            ("SELECT a NOT REGEXP 'b.*' OR a RLIKE 'c' AS b", "SELECT a !~ 'b.*' OR a ~ 'c' AS b"),
            ("SELECT a GLOB /* c */ 'b*' OR a RLIKE 'c*' AS d", "SELECT a LIKE 'b%' OR a ~ 'c*' AS d"),
            ("SELECT a SIMILAR TO 'b*' ESCAPE 'x'", "SELECT a SIMILAR TO 'b*' ESCAPE 'x'"),
            ("SELECT glob FROM t", "SELECT glob FROM t"),
            (
                "SELECT \"glob\", 'a GLOB' FROM t WHERE glob GLOB 'é''*'",
                "SELECT \"glob\", 'a GLOB' FROM t WHERE glob LIKE 'é''%'",
            ),
            (
                "SELECT CAST(a AS LONG), CAST(a AS INT) + 1 AS b, CAST(a AS STRING) AS c",
                "SELECT typed(CAST(a AS BIGINT)) AS \"CAST(a AS LONG)\", typed(CAST(a AS BIGINT)) + 1 AS b, \
                 typed(CAST(a AS STRING)) AS c",
            ),
            (
                "SELECT 'é', E'c:\\\\new'\n, a GLOB\t'b*' AS d -- c",
                "SELECT 'é', E'c:\\\\new', a LIKE 'b%' AS d",
            ),
            (
                "SELECT a::INT::INT::INT::INT::INT::INT AS b",
                "SELECT typed(typed(typed(typed(a::BIGINT)::BIGINT)::BIGINT)::BIGINT)::BIGINT::BIGINT AS b",
            ),
            (
                "SELECT trace_start() ORDER BY TRACE_DUR() / 2, trace_end(1)",
                "SELECT CAST(0 AS BIGINT) AS \"trace_start()\" ORDER BY CAST(70 AS BIGINT) / 2, trace_end(1)",
            ),
            (
                "SELECT PERCENTILE(a, 50) / 1000 AS c, percentile(a, 50), b / 1000",
                "SELECT CAST(PERCENTILE(a, 50) AS DOUBLE) / 1000 AS c, percentile(a, 50), b / 1000",
            ),
            (
                "SELECT u FROM a JOIN b USING (u) WHERE u > 1 AND a.u < v AND EXISTS (SELECT 1 FROM c WHERE u = 1)",
                "SELECT u FROM a JOIN b USING(u) WHERE b.u > 1 AND a.u < v AND EXISTS (SELECT 1 FROM c WHERE u = 1)",
            ),
            (
                "SELECT 1 FROM s.a AS t LEFT JOIN (SELECT 1) AS b USING (u, v) LEFT JOIN c USING (w) WHERE u = v + w",
                "SELECT 1 FROM s.a AS t LEFT JOIN (SELECT 1) AS b USING(u, v) LEFT JOIN c USING(w) WHERE t.u = t.v + w",
            ),
            (
                "SELECT 1 FROM a FULL JOIN b USING (u) WHERE u = 1",
                "SELECT 1 FROM a FULL JOIN b USING(u) WHERE u = 1",
            ),
            (
                "SELECT 1 FROM a JOIN b USING (u) RIGHT JOIN c USING (u) WHERE u = 1",
                "SELECT 1 FROM a JOIN b USING(u) RIGHT JOIN c USING(u) WHERE u = 1",
            ),
            (
                "SELECT 1 FROM a JOIN b USING (u) LEFT JOIN c USING (u) WHERE u = 1",
                "SELECT 1 FROM a JOIN b USING(u) LEFT JOIN c USING(u) WHERE b.u = 1",
            ),
            (
                "SELECT max(a, b), max(a), max(a, b) OVER ()",
                "SELECT CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE greatest(a, b) END AS \"max(a, b)\", max(a), \
                 max(a, b) OVER ()",
            ),
            (
                "SELECT iif(a = 1, max(b, 1), 2) AS c",
                "SELECT CASE WHEN a = 1 THEN CASE WHEN b IS NULL OR 1 IS NULL THEN NULL ELSE greatest(b, 1) END ELSE 2 END AS c",
            ),
            (
                "SELECT NOT a, b FROM t WHERE (t.a) AND b > 1 OR NOT c AND d = TRUE HAVING a",
                "SELECT NOT CAST(a AS BOOLEAN) AS \"NOT a\", b FROM t WHERE (CAST(t.a AS BOOLEAN)) AND b > 1 OR \
                 NOT CAST(c AS BOOLEAN) AND CAST(d AS BOOLEAN) = true HAVING CAST(a AS BOOLEAN)",
            ),
            (
                "SELECT EXISTS (SELECT a FROM t WHERE b = c), NOT EXISTS (SELECT DISTINCT a FROM t LIMIT 1) AS n",
                "SELECT (SELECT count(*) > 0 FROM t WHERE b = c) AS \"EXISTS (SELECT a FROM t WHERE b = c)\", \
                 (SELECT count(*) = 0 FROM (SELECT DISTINCT a FROM t LIMIT 1) AS counted) AS n",
            ),
            ("SELECT 1 FROM t WHERE EXISTS (SELECT 1)", "SELECT 1 FROM t WHERE EXISTS (SELECT 1)"),
            (
                "SELECT group_concat(a) AS a, group_concat(DISTINCT a, '; ') AS b, total(a) AS c",
                "SELECT string_agg(CAST(a AS VARCHAR), ',') AS a, string_agg(DISTINCT CAST(a AS VARCHAR), '; ') AS b, \
                 coalesce(sum(CAST(a AS DOUBLE)), 0.0) AS c",
            ),
        ] {
            assert_eq!(rewritten(query), expected, "{query}");
        }
        let nested = "max(1, ".repeat(40) + "2" + &")".repeat(40);
        assert!(rewritten(&format!("SELECT {nested}")).len() < 10_000, "it does not grow with each level");
    }

    #[test]
    fn what_is_no_operator_of_sqlite_is_left_and_errors_are_of_the_rest() {
        let state = SessionStateBuilder::new().build();
        let error = |query: &str| parsed(&state, query).unwrap_err().to_string();
        for query in [
            "SELECT glob glob glob",
            "SELECT 1 WHERE a GLOB 'b' || c",
            "SELECT 1 WHERE a GLOB b",
            "SELECT 'GLOB",
            "GLOB 'a'",
        ] {
            let error = error(query);
            assert!(!error.contains("SIMILAR") && !error.contains("ESCAPE"), "{query}: {error}");
        }
        let error = error("SELECT a FROM t WHERE a GLOB 'x*' ORDRE BY b");
        assert!(error.contains("ORDRE") && !error.contains("Column"), "{error}");
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
            ("-", "[a--]", false),
            ("a", "[a--]", true),
            ("z", "[z-a]", true),
            ("m", "[z-a]", false),
            ("b", "[a-c-e]", true),
            ("-", "[a-c-e]", true),
            ("d", "[a-c-e]", false),
            ("é", "[à-ü]", true),
            ("^", "[a^]", true),
            ("&&", "[&]&", true),
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
