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

/// Deeper parentheses are refused by the parser.
const MOST_PARENTHESES: usize = 200;

/// How deep the tree of an expression may be, at most, for one level of parentheses. Operators that bind tighter are below the others, so
/// the longest chain of each kind counts.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// The chain of each kind that is being read, from `OR` to the tightest.
    chain: [usize; KINDS],
    longest: [usize; KINDS],
    /// The deepest of the parentheses that were closed.
    inside: Depth,
    /// Whether commas separate tables.
    is_from: bool,
}

/// `OR`; `AND`; comparisons and all others; `+`, `-` and `*`.
const KINDS: usize = 4;

/// The depth of a tree, and how many of its levels are `+`, `-` and `*`.
#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    operators: usize,
    arithmetic: usize,
}

/// Checks that no chain of operators and no sequence of parts is too long. A text that has no tokens is left to the parser.
pub(crate) fn check(query: &str) -> Result<()> {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, query).tokenize() else { return Ok(()) };
    let mut levels = vec![Level::default()];
    let mut parts = 0;
    for token in tokens {
        let Some(level) = levels.last_mut() else { return Ok(()) };
        match &token {
            Token::LParen | Token::LBracket => levels.push(Level::default()),
            Token::RParen | Token::RBracket => {
                let closed = level.depth();
                if levels.len() > 1 {
                    levels.pop();
                }
                if let Some(around) = levels.last_mut() {
                    around.inside = around.inside.or_deeper(closed);
                }
            }
            Token::Comma | Token::SemiColon => {
                parts += usize::from(level.is_from);
                *level = Level { is_from: level.is_from, inside: level.inside, ..Level::default() };
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
                    let is_from = word.keyword == Keyword::FROM;
                    *level = Level { is_from, inside: level.inside, ..Level::default() };
                }
                Keyword::JOIN | Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => parts += 1,
                Keyword::OR => level.add(0),
                Keyword::AND => level.add(1),
                Keyword::NOT | Keyword::IS | Keyword::LIKE | Keyword::COLLATE => level.add(2),
                _ => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::EOF => {}
            Token::Plus | Token::Minus | Token::Mul => level.add(3),
            _ => level.add(2),
        }
        if levels.len() > MOST_PARENTHESES {
            return Ok(());
        }
        let depth = whole(&levels);
        let (most, what) = match () {
            () if parts > MOST_PARTS => (MOST_PARTS, "selects, joins and set operations"),
            () if depth.arithmetic > MOST_ARITHMETIC => (MOST_ARITHMETIC, "of +, - and * in a row"),
            () if depth.operators > MOST_OPERATORS => (MOST_OPERATORS, "operators in a row"),
            () => continue,
        };
        let message = format!(
            "expected at most {most} {what}, found more; IN (…), functions, or parentheses around parts of a chain need less depth"
        );
        return Err(DataFusionError::Plan(message));
    }
    Ok(())
}

/// The depth of the tree so far: parentheses that are open are below the operators around them.
fn whole(levels: &[Level]) -> Depth {
    let (mut around, mut deepest) = (Depth::default(), Depth::default());
    for level in levels {
        deepest = deepest.or_deeper(around.and(level.depth()));
        around = around.and(level.own());
    }
    deepest
}

impl Level {
    /// Adds an operator of a kind. Chains of tighter ones end.
    fn add(&mut self, kind: usize) {
        self.chain[kind] += 1;
        self.chain[kind + 1..].fill(0);
        self.longest[kind] = self.longest[kind].max(self.chain[kind]);
    }

    /// Without what is in closed parentheses.
    fn own(&self) -> Depth {
        Depth { operators: self.longest.iter().sum(), arithmetic: self.longest[KINDS - 1] }
    }

    fn depth(&self) -> Depth {
        self.own().and(self.inside)
    }
}

impl Depth {
    fn and(self, other: Depth) -> Depth {
        Depth { operators: self.operators + other.operators, arithmetic: self.arithmetic + other.arithmetic }
    }

    fn or_deeper(self, other: Depth) -> Depth {
        Depth {
            operators: self.operators.max(other.operators),
            arithmetic: self.arithmetic.max(other.arithmetic),
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
            (repeated("SELECT a FROM b WHERE c = 1", " OR c = 1", 499), false),
            (repeated("SELECT a FROM b WHERE c = 1", " OR c = 1", 500), true),
            (repeated("SELECT a FROM b WHERE c = 1 AND d", " OR c = 1 AND d LIKE 'e'", 490), false),
            (repeated("SELECT 1", " AND c = d = e", 499), true),
            (repeated("SELECT 1", " UNION ALL SELECT 1", 499), false),
            (repeated("SELECT 1", " UNION ALL SELECT 1", 500), true),
            (repeated("SELECT 1 FROM a", ", a", 1000), true),
            (repeated("SELECT 1 FROM a", " JOIN a USING (x)", 1000), true),
            (repeated("SELECT 1", ", a + b - c", 2000), false),
            (format!("SELECT a IN (1{})", ", -2".repeat(5000)), false),
            (format!("SELECT CASE {} END", "WHEN a = 1 THEN b + 1 ".repeat(1000)), false),
            // Chains inside of each other add up, chains beside each other do not.
            (format!("SELECT 1{} - (1{})", "-1".repeat(100), "-1".repeat(100)), true),
            (format!("SELECT (1{}){}", "-1".repeat(100), "-1".repeat(100)), true),
            (format!("SELECT {}1{}", "(".repeat(40), "-1-1-1-1)".repeat(40)), true),
            (format!("SELECT {}1{}", "(".repeat(40), "-1-1-1)".repeat(40)), false),
            (format!("SELECT (1{}) - (1{})", "-1".repeat(100), "-1".repeat(100)), false),
            (format!("SELECT {}", "(".repeat(100_000)), false),
            (format!("SELECT '{}'", "-".repeat(2000)), false),
            (")))((".to_string(), false),
            ("SELECT 'open".to_string(), false),
        ] {
            assert_eq!(check(&query).is_err(), is_refused, "{}", &query[..query.len().min(60)]);
        }
    }
}
