//! The parser: the current token, and the names known at its position.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::ParseError;

use super::token::{self, Token};
use super::types::{Enum, Path, Struct, Type, Variant};

/// Largest nesting depth of types.
pub(super) const MAX_DEPTH: u32 = 24;
/// Largest number of fields, labels, names and attributes of a metadata; LTTng's kernel tracer declares some ten
/// thousand.
const MAX_ITEMS: u32 = 1 << 19;

/// Names of types that were declared in one block.
#[derive(Default)]
pub(super) struct Names {
    pub(super) aliases: HashMap<String, Type>,
    pub(super) structs: HashMap<String, Arc<Struct>>,
    pub(super) variants: HashMap<String, Arc<Variant>>,
    pub(super) enums: HashMap<String, Arc<Enum>>,
}

pub(super) struct Parser<'a> {
    text: &'a str,
    /// The text after the current token.
    rest: &'a str,
    token: Token<'a>,
    /// The position of the current token.
    at: usize,
    depth: u32,
    items: u32,
    /// The innermost scope is last.
    scopes: Vec<Names>,
    pub(super) wanted: HashSet<Arc<str>>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Parser<'a>, ParseError> {
        let mut parser = Parser {
            text,
            rest: text,
            token: Token::End,
            at: 0,
            depth: 0,
            items: 0,
            scopes: vec![Names::default()],
            wanted: HashSet::new(),
        };
        parser.advance()?;
        Ok(parser)
    }

    pub(super) fn token(&self) -> Token<'a> {
        self.token
    }

    pub(super) fn advance(&mut self) -> Result<Token<'a>, ParseError> {
        let before = self.token;
        let rest = token::blanks(self.rest).map_or(self.rest, |(rest, ())| rest);
        self.at = self.text.len() - rest.len();
        match token::token(rest) {
            Ok((rest, token)) => (self.rest, self.token) = (rest, token),
            Err(_) => {
                let found = format!("{:?}", rest.chars().take(20).collect::<String>());
                let expected = "a word, a number, a quoted text or a sign".to_owned();
                return Err(ParseError { at: self.at as u64, part: "metadata text", expected, found });
            }
        }
        Ok(before)
    }

    pub(super) fn parse_error(&self, expected: impl Into<String>) -> ParseError {
        let found = match self.token {
            Token::End => "the end".to_owned(),
            Token::Word(word) | Token::Sign(word) => format!("{:?}", shortened(word)),
            Token::Text(text) => format!("the text {:?}", shortened(text)),
            Token::Number(number) => number.to_string(),
        };
        ParseError { at: self.at as u64, part: "metadata text", expected: expected.into(), found }
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(found) if found == word)
    }

    /// Consumes the sign if it is the current token.
    pub(super) fn take_sign(&mut self, sign: &str) -> Result<bool, ParseError> {
        let there = self.is_sign(sign);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    pub(super) fn sign(&mut self, sign: &str) -> Result<(), ParseError> {
        if self.take_sign(sign)? { Ok(()) } else { Err(self.parse_error(format!("{sign:?}"))) }
    }

    pub(super) fn word(&mut self) -> Result<&'a str, ParseError> {
        let Token::Word(word) = self.token else { return Err(self.parse_error("a word")) };
        self.advance()?;
        Ok(word)
    }

    /// A number, with its sign.
    pub(super) fn number(&mut self) -> Result<i128, ParseError> {
        let negative = self.take_sign("-")?;
        if !negative {
            self.take_sign("+")?;
        }
        let Token::Number(number) = self.token else { return Err(self.parse_error("a number")) };
        self.advance()?;
        Ok(if negative { -i128::from(number) } else { i128::from(number) })
    }

    /// `a` or `a.b.c`.
    pub(super) fn path(&mut self) -> Result<Path, ParseError> {
        let mut path = vec![Arc::from(self.word()?)];
        while self.take_sign(".")? {
            self.item()?;
            path.push(Arc::from(self.word()?));
        }
        Ok(path)
    }

    /// A path that refers to a field.
    pub(super) fn reference(&mut self) -> Result<Path, ParseError> {
        let path = self.path()?;
        self.wanted.extend(path.last().cloned());
        Ok(path)
    }

    /// Counts an item that takes memory.
    pub(super) fn item(&mut self) -> Result<(), ParseError> {
        self.items += 1;
        if self.items > MAX_ITEMS {
            Err(self.parse_error(format!("at most {MAX_ITEMS} items")))
        } else {
            Ok(())
        }
    }

    /// The statements between `{` and `}`, in a scope of their own; calls `statement` for each.
    pub(super) fn block(
        &mut self,
        mut statement: impl FnMut(&mut Parser<'a>) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        self.sign("{")?;
        self.scopes.push(Names::default());
        while !self.is_sign("}") {
            self.item()?;
            statement(self)?;
        }
        self.scopes.pop();
        self.sign("}")
    }

    /// Reads a type that may be nested. Every recursion from a type to one within it goes through this function.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'a>) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.parse_error(format!("at most {MAX_DEPTH} nested types")));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// The names of the current block.
    pub(super) fn names(&mut self) -> &mut Names {
        // The outermost scope always exists.
        if self.scopes.is_empty() {
            self.scopes.push(Names::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// The result of `find` in the innermost block that has one.
    pub(super) fn find<T>(&self, find: impl Fn(&Names) -> Option<&T>) -> Option<T>
    where
        T: Clone,
    {
        self.scopes.iter().rev().find_map(find).cloned()
    }
}

fn shortened(word: &str) -> String {
    word.chars().take(40).collect()
}
