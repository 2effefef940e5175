//! Attributes of types and blocks: `size = 8;`, `map = clock.monotonic.value;`.

use std::sync::Arc;

use crate::error::ParseError;

use super::parser::Parser;
use super::token::{Token, unescaped};
use super::types::Order;

/// The value of an attribute.
#[derive(Debug)]
pub(super) enum Value {
    Number(i128),
    Text(String),
    /// `le`, `clock.monotonic.value`.
    Path(String),
}

/// `{ size = 8; align = 8; }`
pub(super) fn attributes(parser: &mut Parser<'_>) -> Result<Vec<(String, Value)>, ParseError> {
    let mut attributes = Vec::new();
    parser.block(|parser| {
        let name = parser.word()?.to_owned();
        parser.sign("=")?;
        attributes.push((name, value(parser)?));
        parser.sign(";")
    })?;
    Ok(attributes)
}

pub(super) fn value(parser: &mut Parser<'_>) -> Result<Value, ParseError> {
    match parser.token() {
        Token::Text(text) => {
            parser.advance()?;
            Ok(Value::Text(unescaped(text)))
        }
        Token::Word(_) => Ok(Value::Path(parser.path()?.join("."))),
        _ => Ok(Value::Number(parser.number()?)),
    }
}

impl Value {
    /// The number; `true` and `false` are 1 and 0.
    pub(super) fn number(&self) -> Option<i128> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Path(word) | Value::Text(word) => match word.to_ascii_lowercase().as_str() {
                "true" => Some(1),
                "false" => Some(0),
                _ => None,
            },
        }
    }

    pub(super) fn into_text(self) -> String {
        match self {
            Value::Number(number) => number.to_string(),
            Value::Text(text) | Value::Path(text) => text,
        }
    }

    /// `None` is the byte order of the trace.
    pub(super) fn order(&self) -> Option<Order> {
        match self {
            Value::Path(word) | Value::Text(word) => match word.as_str() {
                "le" => Some(Order::Little),
                "be" | "network" => Some(Order::Big),
                _ => None,
            },
            Value::Number(_) => None,
        }
    }

    pub(super) fn base(&self) -> u8 {
        match self {
            Value::Number(number) => u8::try_from(*number).unwrap_or(10),
            Value::Path(word) | Value::Text(word) => match word.as_str() {
                "hexadecimal" | "hex" | "x" | "X" | "p" => 16,
                "octal" | "oct" | "o" => 8,
                "binary" | "b" => 2,
                _ => 10,
            },
        }
    }

    /// Whether it is an encoding of characters.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Value::Path(word) | Value::Text(word)
        if matches!(word.to_ascii_lowercase().as_str(), "utf8" | "ascii"))
    }

    /// The name in `clock.NAME.value`.
    pub(super) fn clock(&self) -> Option<Arc<str>> {
        let (Value::Path(path) | Value::Text(path)) = self else { return None };
        let name = path.strip_prefix("clock.")?;
        Some(Arc::from(name.strip_suffix(".value").unwrap_or(name)))
    }
}
