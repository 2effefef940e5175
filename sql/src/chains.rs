//! Refuses queries whose plan would be too deep.
//!
//! `a OR b OR c` is parsed as `(a OR b) OR c`: with each further operator, the tree is one level deeper. The parser limits the
//! depth of parentheses, but not of such chains. Planning visits trees recursively: 20 000 levels overflow the stack, which ends
//! the process, and so all queries of a server. For each `+`, `-` and `*`, planning derives the types of all levels
//! below again: 100 of them take 0.1 s, 300 take 3 s (AMD EPYC).

use datafusion::{
    error::{DataFusionError, Result},
    sql::sqlparser::{
        dialect::GenericDialect,
        keywords::Keyword,
        tokenizer::{Token, Tokenizer},
    },
};

/// The size of the stack of a thread that plans queries. The deepest that is accepted needs a part of it.
pub const QUERY_STACK: usize = 16 << 20;
/// The maximum number of operators in a row.
const MOST_OPERATORS: usize = 500;
/// Of these, the maximum number of `+`, `-` and `*`.
const MOST_ARITHMETIC: usize = 150;
/// The maximum number of selects, joins and set operations.
const MOST_PARTS: usize = 1000;

/// The operators that are open at one level of parentheses.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    operators: usize,
    arithmetic: usize,
    /// Whether commas separate tables.
    is_from: bool,
}

/// Checks that no chain of operators and no sequence of parts is too long. A text that has no tokens is left to the parser.
pub(crate) fn check(query: &str) -> Result<()> {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, query).tokenize() else { return Ok(()) };
    let mut levels = vec![Chain::default()];
    let (mut open, mut parts) = (Chain::default(), 0);
    for token in tokens {
        let is_outermost = levels.len() == 1;
        let Some(level) = levels.last_mut() else { return Ok(()) };
        match &token {
            Token::LParen | Token::LBracket => levels.push(Chain::default()),
            Token::RParen | Token::RBracket => {
                open = open.without(*level);
                *level = Chain::default();
                if !is_outermost {
                    levels.pop();
                }
            }
            Token::Comma | Token::SemiColon => {
                parts += usize::from(level.is_from);
                open = open.without(*level);
                *level = Chain { is_from: level.is_from, ..Chain::default() };
            }
            Token::Word(word) => match word.keyword {
                Keyword::SELECT
                | Keyword::FROM
                | Keyword::WHERE
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::ON
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE => {
                    parts += usize::from(word.keyword == Keyword::SELECT);
                    open = open.without(*level);
                    *level = Chain { is_from: word.keyword == Keyword::FROM, ..Chain::default() };
                }
                Keyword::JOIN | Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => parts += 1,
                Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::LIKE
                | Keyword::COLLATE => {
                    level.operators += 1;
                    open.operators += 1;
                }
                _ => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::EOF => {}
            Token::Plus | Token::Minus | Token::Mul => {
                (level.operators, level.arithmetic) = (level.operators + 1, level.arithmetic + 1);
                (open.operators, open.arithmetic) = (open.operators + 1, open.arithmetic + 1);
            }
            _ => {
                level.operators += 1;
                open.operators += 1;
            }
        }
        let (most, what) = match () {
            () if parts > MOST_PARTS => (MOST_PARTS, "selects, joins and set operations"),
            () if open.arithmetic > MOST_ARITHMETIC => (MOST_ARITHMETIC, "of +, - and * in a row"),
            () if open.operators > MOST_OPERATORS => (MOST_OPERATORS, "operators in a row"),
            () => continue,
        };
        let message = format!(
            "expected at most {most} {what}, found more; IN (…), functions, or parentheses around parts of a chain need less depth"
        );
        return Err(DataFusionError::Plan(message));
    }
    Ok(())
}

impl Chain {
    fn without(self, other: Chain) -> Chain {
        Chain {
            operators: self.operators - other.operators,
            arithmetic: self.arithmetic - other.arithmetic,
            is_from: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_chains_are_refused_wherever_they_are_and_long_lists_are_not() {
        let repeated = |first: &str, next: &str, count: usize| format!("{first}{}", next.repeat(count));
        for (query, is_refused) in [
            (repeated("SELECT 1", " OR true", 500), false),
            (repeated("SELECT 1", " OR true", 501), true),
            (repeated("SELECT 1", "-1", 150), false),
            (repeated("SELECT 1", "-1", 151), true),
            (repeated("SELECT 1", "::int", 501), true),
            (repeated("SELECT a FROM b WHERE c = 1", " OR c = 1", 251), true),
            (repeated("SELECT 1", " UNION ALL SELECT 1", 499), false),
            (repeated("SELECT 1", " UNION ALL SELECT 1", 500), true),
            (repeated("SELECT 1 FROM a", ", a", 1000), true),
            (repeated("SELECT 1 FROM a", " JOIN a USING (x)", 1000), true),
            (repeated("SELECT 1", ", a + b - c", 2000), false),
            (format!("SELECT a IN (1{})", ", -2".repeat(5000)), false),
            (format!("SELECT CASE {} END", "WHEN a = 1 THEN b + 1 ".repeat(1000)), false),
            // Chains inside of each other add up, chains beside each other do not.
            (format!("SELECT 1{} - (1{})", "-1".repeat(100), "-1".repeat(100)), true),
            (format!("SELECT (1{}) - (1{})", "-1".repeat(100), "-1".repeat(100)), false),
            (format!("SELECT '{}'", "-".repeat(2000)), false),
            (")))((".to_string(), false),
            ("SELECT 'open".to_string(), false),
        ] {
            assert_eq!(check(&query).is_err(), is_refused, "{}", &query[..query.len().min(60)]);
        }
    }
}
