//! Parses queries, and refuses those whose plan would be too deep.
//!
//! `a OR b OR c` is parsed as `(a OR b) OR c`: with each further operator, the tree is one level deeper. The parser
//! limits the depth of parentheses, but not of such chains. Planning visits trees recursively: 20 000 levels overflow the
//! stack, which ends the process, and so all queries of a server. For each `+`, `-` and `*`, planning derives the types
//! of all levels below again: 100 of them take 0.1 s, 300 take 3 s (AMD EPYC).
//!
//! To drop a tree is recursive, too. So a long query is parsed on a thread whose stack suffices for any tree of so many
//! tokens. Only what is accepted leaves this thread.

use std::{ops::ControlFlow, thread};

use datafusion::{
    error::{DataFusionError, Result},
    sql::{
        parser::Statement,
        sqlparser::{
            ast::{BinaryOperator, Expr, Query, Select, TableFactor, Visit, Visitor},
            dialect::GenericDialect,
            keywords::Keyword,
            tokenizer::{Token, Tokenizer},
        },
    },
};

/// The size of the stack of a server's threads, which plan queries. The deepest query that is accepted fits in it.
pub const QUERY_STACK: usize = 16 << 20;
/// The stack that a tree may need for each token of its text.
const STACK_OF_TOKEN: usize = 2048;

/// The maximum depth of an expression.
const MOST_OPERATORS: usize = 500;
/// Of these, the maximum number of `+`, `-` and `*`.
const MOST_ARITHMETIC: usize = 150;
/// The maximum sum of the depths of all SELECTs. The planner may join their expressions to one.
const MOST_OF_ALL: usize = 3000;
/// The maximum number of selects, joins and set operations.
const MOST_PARTS: usize = 1000;
/// The maximum depth of what the parser reads recursively without a limit of its own.
const MOST_NESTED: usize = 100;
/// A text with fewer tokens is below all these limits.
const SHORT: usize = MOST_NESTED;

/// Parses a query by `parse`. A query whose plan would be too deep is an error.
pub(crate) fn parsed(query: &str, parse: impl FnOnce() -> Result<Statement> + Send) -> Result<Statement> {
    // The parser has an error for a text that has no tokens.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, query).tokenize() else { return parse() };
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    if tokens.len() <= SHORT {
        return parse();
    }
    let mut depth = Depth { parts: parts_in(&tokens), ..Depth::default() };
    check_nesting(&tokens)?;
    if let ControlFlow::Break(error) = depth.check() {
        return Err(error);
    }
    let body = || {
        let statement = parse()?;
        match visit(&statement, &mut depth) {
            ControlFlow::Continue(()) => Ok(statement),
            ControlFlow::Break(error) => Err(error),
        }
    };
    let stack = QUERY_STACK + STACK_OF_TOKEN * tokens.len();
    thread::scope(|scope| {
        let parser = thread::Builder::new().stack_size(stack).spawn_scoped(scope, body)?;
        parser.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Refuses what the parser reads recursively without a limit, and chains that no expression of the parser shows.
fn check_nesting(tokens: &[Token]) -> Result<()> {
    let is = |token: &Token, keywords: &[Keyword]| matches!(token, Token::Word(word) if keywords.contains(&word.keyword));
    let explained = tokens.iter().filter(|token| is(token, &[Keyword::EXPLAIN])).count();
    if explained > MOST_NESTED {
        return Err(too_deep(MOST_NESTED, "EXPLAIN"));
    }
    let (mut types, mut intervals, mut subscripts) = (0, 0, 0);
    for pair in tokens.windows(2) {
        let [token, next] = pair else { continue };
        types +=
            usize::from(*next == Token::Lt && is(token, &[Keyword::ARRAY, Keyword::STRUCT, Keyword::MAP]));
        // Before a text or number, it is not nested.
        let is_plain = matches!(next, Token::SingleQuotedString(_) | Token::Number(..));
        intervals += usize::from(is(token, &[Keyword::INTERVAL]) && !is_plain);
        subscripts += usize::from(*pair == [Token::RBracket, Token::LBracket]);
    }
    for (found, most, what) in [
        (types, MOST_NESTED, "types in angle brackets"),
        (intervals, MOST_NESTED, "INTERVAL before an expression"),
        (subscripts, MOST_OPERATORS, "subscripts"),
    ] {
        if found > most {
            return Err(too_deep(most, what));
        }
    }
    let mut open: usize = 0;
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => open += 1,
            Token::RParen | Token::RBracket | Token::RBrace => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MOST_NESTED {
            return Err(too_deep(MOST_NESTED, "open parentheses"));
        }
    }
    Ok(())
}

/// The number of selects, set operations and pipes. Joins have no keyword of their own if they are commas.
fn parts_in(tokens: &[Token]) -> usize {
    let is_part = |token: &&Token| match token {
        Token::VerticalBarRightAngleBracket => true,
        Token::Word(word) => {
            let parts = [Keyword::SELECT, Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];
            parts.contains(&word.keyword)
        }
        _ => false,
    };
    tokens.iter().filter(is_part).count()
}

fn visit(statement: &Statement, depth: &mut Depth) -> ControlFlow<DataFusionError> {
    match statement {
        Statement::Statement(statement) => statement.visit(depth),
        Statement::Explain(explain) => visit(&explain.statement, depth),
        // No query of a super-trace is one of the others.
        _ => ControlFlow::Continue(()),
    }
}

fn too_deep(most: usize, what: &str) -> DataFusionError {
    DataFusionError::Plan(format!("expected at most {most} {what}, found more"))
}

/// The depth of the tree at the place where the visitor is.
#[derive(Debug, Default)]
struct Depth {
    operators: usize,
    /// The `+`, `-` and `*` among them.
    arithmetic: usize,
    /// The queries and SELECTs around this place.
    around: Vec<Around>,
    /// The sum of the depths of all SELECTs, and of expressions outside of them.
    of_all: usize,
    parts: usize,
}

/// A query or SELECT.
#[derive(Debug)]
struct Around {
    is_select: bool,
    /// The number of operators around it.
    outside: usize,
    /// The depth of its deepest expression so far.
    deepest: usize,
}

impl Depth {
    fn check(&self) -> ControlFlow<DataFusionError> {
        let in_a_row = |what: &str| {
            format!(
                "{what} in a row; IN (…), functions, or parentheses around parts of a chain need less depth"
            )
        };
        let error = match () {
            () if self.parts > MOST_PARTS => too_deep(MOST_PARTS, "selects, joins and set operations"),
            () if self.arithmetic > MOST_ARITHMETIC => too_deep(MOST_ARITHMETIC, &in_a_row("of +, - and *")),
            () if self.operators > MOST_OPERATORS => too_deep(MOST_OPERATORS, &in_a_row("operators")),
            () if self.of_all > MOST_OF_ALL => {
                too_deep(MOST_OF_ALL, "operators below each other in all SELECTs")
            }
            () => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(error)
    }

    fn enter(&mut self, is_select: bool) -> ControlFlow<DataFusionError> {
        self.around.push(Around { is_select, outside: self.operators, deepest: 0 });
        ControlFlow::Continue(())
    }

    fn leave(&mut self) -> ControlFlow<DataFusionError> {
        self.of_all += self.around.pop().map_or(0, |left| left.deepest);
        self.check()
    }
}

impl Visitor for Depth {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<DataFusionError> {
        self.enter(false)
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<DataFusionError> {
        self.leave()
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<DataFusionError> {
        self.enter(true)
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<DataFusionError> {
        self.leave()
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<DataFusionError> {
        self.parts += 1;
        self.check()
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        let (operators, arithmetic) = levels_of(expr);
        self.operators += operators;
        self.arithmetic += arithmetic;
        let operators = self.operators;
        if let Some(around) = self.around.last_mut() {
            around.deepest = around.deepest.max(operators - around.outside);
        }
        self.check()
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        let (operators, arithmetic) = levels_of(expr);
        self.operators -= operators;
        self.arithmetic -= arithmetic;
        let is_outermost = |around: &&mut Around| !around.is_select && around.outside == self.operators;
        if let Some(query) = self.around.last_mut().filter(is_outermost) {
            self.of_all += std::mem::take(&mut query.deepest);
        }
        self.check()
    }
}

/// How many levels an expression is above its operands, and how many of these are `+`, `-` and `*`.
fn levels_of(expr: &Expr) -> (usize, usize) {
    use BinaryOperator::{Minus, Multiply, Plus};
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Nested(_) => (0, 0),
        Expr::BinaryOp { op: Plus | Minus | Multiply, .. } => (1, 1),
        Expr::CompoundFieldAccess { access_chain, .. } => (access_chain.len(), 0),
        Expr::JsonAccess { path, .. } => (path.path.len(), 0),
        _ => (1, 0),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    /// `None` if the text cannot be parsed.
    fn is_refused(query: &str) -> Option<bool> {
        let parse = || {
            let mut statements = DFParser::parse_sql(query)?;
            statements.pop_front().ok_or_else(|| DataFusionError::Plan("nothing".into()))
        };
        match parsed(query, parse) {
            Ok(_) => Some(false),
            Err(error) => error.to_string().contains("expected at most").then_some(true),
        }
    }

    #[test]
    fn deep_expressions_are_refused_wherever_they_are_and_long_lists_are_not() {
        let repeated = |first: &str, next: &str, count: usize| format!("{first}{}", next.repeat(count));
        for (query, expected) in [
            (repeated("SELECT 1", " OR true", 500), false),
            (repeated("SELECT 1", " OR true", 501), true),
            (repeated("SELECT 1", "-1", 150), false),
            (repeated("SELECT 1", "-1", 151), true),
            (repeated("SELECT 1", "-1/1", 150), false),
            (repeated("SELECT 1", "-1/1", 151), true),
            (repeated("SELECT 1", "-1::int", 151), true),
            (repeated("SELECT 1", "/2", 500), false),
            (repeated("SELECT 1", "/2", 501), true),
            (repeated("SELECT 1", "::int", 501), true),
            (repeated("SELECT true", " IN (true)", 501), true),
            (repeated("SELECT a", "[1]", 500), false),
            (repeated("SELECT a", "[1]", 502), true),
            (repeated("SELECT CAST(a AS int", "[]", 600) + ")", true),
            (repeated("SELECT 1", " - CASE WHEN a THEN 1 END", 151), true),
            (repeated("SELECT a.limit", " OR a.limit", 501), true),
            (repeated("SELECT a FROM b WHERE c = 1", " OR c = 1", 499), false),
            (repeated("SELECT a FROM b WHERE c = 1", " OR c = 1", 500), true),
            (repeated("SELECT a FROM b WHERE c = 1 AND d", " OR c = 1 AND d LIKE 'e'", 490), false),
            (repeated("SELECT 1", " AND c = d = e", 499), true),
            (repeated("SELECT 1", " UNION ALL SELECT 1", 499), false),
            (repeated("SELECT 1", " UNION ALL SELECT 1", 500), true),
            (repeated("SELECT 1 FROM a", ", a", 1000), true),
            (repeated("SELECT 1 FROM a JOIN a ON true", ", a", 1000), true),
            (repeated("SELECT 1 FROM a", " JOIN a USING (x)", 1000), true),
            (repeated("SELECT 1 AS a", " |> WHERE a = 1", 1000), true),
            (repeated("SELECT 1 AS a", &format!(" |> SELECT a{} AS a", "/2".repeat(400)), 10), true),
            (repeated("SELECT 1 AS a", &format!(" |> SELECT a{} AS a", "/2".repeat(400)), 5), false),
            (repeated("SELECT 1", ", a + b - c", 2000), false),
            (format!("SELECT a IN (1{})", ", -2".repeat(5000)), false),
            (format!("SELECT CASE {} END", "WHEN a = 1 THEN b + 1 ".repeat(1000)), false),
            // Expressions inside of each other add up, expressions beside each other do not.
            (format!("SELECT (1{}){}", "-1".repeat(100), "-1".repeat(100)), true),
            (format!("SELECT 1 - (1{}){}", "-1".repeat(100), "-1".repeat(100)), true),
            (format!("SELECT {}1{}", "(".repeat(40), "-1-1-1-1)".repeat(40)), true),
            (format!("SELECT {}1{}", "(".repeat(40), "-1-1-1)".repeat(40)), false),
            (format!("SELECT (1{}) - (1{})", "-1".repeat(100), "-1".repeat(100)), false),
            (format!("SELECT (1{}), 1{}", "-1".repeat(100), "-1".repeat(100)), false),
            (format!("WITH a AS (SELECT 1{0}) SELECT * FROM a WHERE 1{0}", " OR true".repeat(300)), false),
            (format!("EXPLAIN SELECT 1{}", " OR true".repeat(501)), true),
            // What the parser reads recursively.
            (format!("{}SELECT 1", "EXPLAIN ".repeat(2000)), true),
            (format!("{}SELECT 1", "EXPLAIN ANALYZE VERBOSE ".repeat(2000)), true),
            (format!("SELECT {}1", "INTERVAL ".repeat(3000)), true),
            (format!("SELECT 1{}", ", INTERVAL '1' DAY".repeat(3000)), false),
            (format!("SELECT CAST(1 AS {}INT{})", "ARRAY<".repeat(5000), ">".repeat(5000)), true),
            (format!("SELECT CAST(1 AS {}INT{})", "STRUCT<a ".repeat(5000), ">".repeat(5000)), true),
            (format!("SELECT CAST(1 AS {}INT{})", "Nullable(".repeat(5000), ")".repeat(5000)), true),
            (format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)), true),
            (format!("SELECT a < 1{}", " OR a < 1".repeat(200)), false),
            (format!("SELECT '{}'", "-".repeat(2000)), false),
        ] {
            assert_eq!(is_refused(&query), Some(expected), "{}", &query[..query.len().min(60)]);
        }
    }

    #[test]
    fn a_deep_text_that_cannot_be_parsed_overflows_no_stack() {
        let deep = " OR true".repeat(200_000);
        for query in [
            format!("SELECT 1{deep})"),
            format!("SELECT 1{deep} FROM"),
            ")))((".to_string(),
            "SELECT 'open".to_string(),
        ] {
            assert_eq!(is_refused(&query), None, "{}", &query[..query.len().min(60)]);
        }
        assert_eq!(is_refused(&format!("SELECT 1{deep}")), Some(true));
    }
}
