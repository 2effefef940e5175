//! The metadata of a trace: its declarations, with all names resolved.
//!
//! The tokeniser uses nom; the grammar is parsed by recursive descent of bounded depth, because whether a word is a
//! type depends, as in C, on the declarations before it.

mod attributes;
mod blocks;
mod labels;
mod packets;
mod parser;
mod token;
mod type_text;
mod types;

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::ParseError;

pub(super) use labels::Labels;
pub(crate) use packets::is_metadata;
pub(super) use types::{Array, Enum, Float, Integer, Length, Order, Path, Struct, Type, Variant};

/// Context fields with the LWP, with and without LTTng's `_`.
pub(super) const LWP_NAMES: [&str; 4] = ["vtid", "_vtid", "tid", "_tid"];

/// The content of a metadata.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    /// `None` if there is no `trace` block, or it was not readable.
    pub(super) trace: Option<Trace>,
    /// Names and values, in order.
    pub(super) env: Vec<(String, String)>,
    pub(super) clocks: Vec<Clock>,
    pub(super) streams: Vec<Stream>,
    pub(super) events: Vec<EventDeclaration>,
    /// The last names of all tags and lengths, and [`LWP_NAMES`]: fields whose values must be kept.
    pub(super) wanted: HashSet<Arc<str>>,
    /// The position from which on the metadata is not readable; earlier declarations are kept.
    pub(super) parse_error: Option<ParseError>,
}

#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) order: Order,
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) packet_header: Option<Type>,
}

#[derive(Clone, Debug)]
pub(super) struct Clock {
    pub(super) name: Arc<str>,
    pub(super) description: String,
    pub(super) uuid: String,
    /// Ticks per second; not 0.
    pub(super) freq: u64,
    /// The clock's zero in seconds since the epoch.
    pub(super) offset_s: i64,
    /// The same in ticks; the two are added.
    pub(super) offset: i64,
    /// Whether it shares its zero with other clocks that have this flag.
    pub(super) absolute: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) id: u64,
    pub(super) packet_context: Option<Type>,
    pub(super) event_header: Option<Type>,
    pub(super) event_context: Option<Type>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct EventDeclaration {
    pub(super) name: String,
    pub(super) id: u64,
    pub(super) stream_id: Option<u64>,
    pub(super) context: Option<Type>,
    pub(super) fields: Option<Type>,
}

impl Metadata {
    /// Reads as much as is readable.
    pub(super) fn read(file: &[u8]) -> Metadata {
        let (text, broken) = packets::text(file);
        let mut metadata = blocks::read(&text);
        // A damaged packet comes after the readable text.
        metadata.parse_error = broken.or(metadata.parse_error);
        metadata.wanted.extend(LWP_NAMES.map(Arc::from));
        metadata
    }

    /// The value of a name in `env`.
    pub(super) fn env(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
