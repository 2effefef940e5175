//! Outputs for the values that a plan reads.

use std::borrow::Cow;
use std::fmt::{self, Write};

use sigmund_model::Params;

use super::super::bits::Bits;
use super::run::elements;
use super::{List, State, Stop};

/// Longer texts are cut, and end with `…`.
const MAX_TEXT: usize = 1 << 16;

/// Receives the values of one event, or of one header, in order.
pub(crate) trait ValueSink {
    fn number(&mut self, value: i64, signed: bool);
    fn named(&mut self, value: i64, name: &str);
    fn float(&mut self, value: f64);
    fn text(&mut self, bytes: &[u8]);
    /// Absent fields.
    fn unknown(&mut self, count: usize);
    fn list(&mut self, list: &List, bits: &mut Bits<'_>, state: &mut State) -> Result<(), Stop>;
    fn between(&mut self, sign: &str);
}

/// Discards the values, for headers.
pub(crate) struct DiscardValues;

impl ValueSink for DiscardValues {
    fn number(&mut self, _: i64, _: bool) {}
    fn named(&mut self, _: i64, _: &str) {}
    fn float(&mut self, _: f64) {}
    fn text(&mut self, _: &[u8]) {}
    fn unknown(&mut self, _: usize) {}
    fn between(&mut self, _: &str) {}

    fn list(&mut self, list: &List, bits: &mut Bits<'_>, state: &mut State) -> Result<(), Stop> {
        elements(list, bits, state, self)
    }
}

impl ValueSink for Params {
    #[inline]
    fn number(&mut self, value: i64, _: bool) {
        self.push_number(value);
    }

    #[inline]
    fn named(&mut self, value: i64, name: &str) {
        self.push_named(value, name);
    }

    #[inline]
    fn float(&mut self, value: f64) {
        self.push_number(value.to_bits() as i64);
    }

    #[inline]
    fn text(&mut self, bytes: &[u8]) {
        match bytes.get(..MAX_TEXT) {
            Some(cut) if cut.len() < bytes.len() => self.push_text(&(lossy(cut).into_owned() + "…")),
            // Twice as fast as `from_utf8_lossy` for a dozen characters.
            _ => match std::str::from_utf8(bytes) {
                Ok(text) => self.push_text(text),
                Err(_) => self.push_text(&lossy(bytes)),
            },
        }
    }

    fn unknown(&mut self, count: usize) {
        for _ in 0..count {
            self.push_unknown();
        }
    }

    fn between(&mut self, _: &str) {}

    fn list(&mut self, list: &List, bits: &mut Bits<'_>, state: &mut State) -> Result<(), Stop> {
        let mut text = std::mem::take(&mut state.list);
        text.0.clear();
        let read = text.list(list, bits, state);
        self.push_text(&text.0);
        state.list = text;
        read
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The elements of an array as text: `[1, 2, 3]`.
#[derive(Debug, Default)]
pub(crate) struct ListText(String);

impl ListText {
    /// Adds a value, after a comma if it is not the first in its brackets.
    fn value(&mut self, value: impl fmt::Display) {
        if self.0.len() < MAX_TEXT {
            self.comma();
            // Writing to a String cannot fail.
            let _ = write!(self.0, "{value}");
            if self.0.len() >= MAX_TEXT {
                self.0.push('…');
            }
        }
    }

    fn comma(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with(['[', '{']) {
            self.0.push_str(", ");
        }
    }
}

impl ValueSink for ListText {
    fn number(&mut self, value: i64, signed: bool) {
        if signed { self.value(value) } else { self.value(value as u64) }
    }

    fn named(&mut self, value: i64, name: &str) {
        self.value(format_args!("{value}({name})"));
    }

    fn float(&mut self, value: f64) {
        self.value(value);
    }

    fn text(&mut self, bytes: &[u8]) {
        self.value(lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes)));
    }

    fn unknown(&mut self, _: usize) {}

    fn between(&mut self, sign: &str) {
        if self.0.len() < MAX_TEXT {
            if matches!(sign, "[" | "{") {
                self.comma();
            }
            self.0.push_str(sign);
        }
    }

    fn list(&mut self, list: &List, bits: &mut Bits<'_>, state: &mut State) -> Result<(), Stop> {
        self.between("[");
        elements(list, bits, state, self)?;
        self.between("]");
        Ok(())
    }
}
