//! The blocks of a metadata: `trace`, `env`, `clock`, `stream`, `event`, and the names between them.

use std::sync::Arc;

use crate::error::ParseError;

use super::attributes::{Value, value};
use super::parser::Parser;
use super::token::Token;
use super::type_text::{declaration, type_of};
use super::types::{Order, Type};
use super::{Clock, EventDeclaration, Metadata, Stream, Trace};

/// Reads all blocks that are readable.
pub(super) fn read(text: &str) -> Metadata {
    let mut metadata = Metadata::default();
    match Parser::new(text) {
        Ok(mut parser) => {
            while parser.token() != Token::End {
                if let Err(parse_error) = block(&mut parser, &mut metadata) {
                    metadata.parse_error = Some(parse_error);
                    break;
                }
            }
            metadata.wanted = std::mem::take(&mut parser.wanted);
        }
        Err(parse_error) => metadata.parse_error = Some(parse_error),
    }
    metadata
}

fn block(parser: &mut Parser<'_>, metadata: &mut Metadata) -> Result<(), ParseError> {
    if parser.take_sign(";")? || declaration(parser)? {
        return Ok(());
    }
    parser.item()?;
    let kind = parser.word()?;
    match kind {
        "trace" => metadata.trace = Some(trace(parser)?),
        "env" => entries(parser, |_, name, entry| {
            if let BlockEntry::Value(value) = entry {
                metadata.env.push((name, value.into_text()));
            }
            Ok(())
        })?,
        "clock" => metadata.clocks.push(clock(parser)?),
        "stream" => metadata.streams.push(stream(parser)?),
        "event" => metadata.events.push(event(parser)?),
        // The position of an event in its source, and unknown blocks, are skipped.
        _ => entries(parser, |_, _, _| Ok(()))?,
    }
    Ok(())
}

/// The meaning of a name in a block: `name = value;`, `name := type;`.
enum BlockEntry {
    Value(Value),
    Type(Type),
}

/// Calls `take` for each entry of a block.
fn entries(
    parser: &mut Parser<'_>,
    mut take: impl FnMut(&Parser<'_>, String, BlockEntry) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    parser.block(|parser| {
        if declaration(parser)? {
            return Ok(());
        }
        let name = parser.path()?.join(".");
        let entry = match parser.take_sign(":=")? {
            true => BlockEntry::Type(type_of(parser)?),
            false => {
                parser.sign("=")?;
                BlockEntry::Value(value(parser)?)
            }
        };
        take(parser, name, entry)?;
        parser.sign(";")
    })
}

fn number<T: TryFrom<i128>>(parser: &Parser<'_>, value: &Value) -> Result<T, ParseError> {
    let number = value.number().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| parser.parse_error("before this, a number that fits"))
}

fn trace(parser: &mut Parser<'_>) -> Result<Trace, ParseError> {
    let mut trace = Trace { order: Order::Little, uuid: None, packet_header: None };
    let mut order = None;
    entries(parser, |parser, name, entry| {
        match (name.as_str(), entry) {
            ("byte_order", BlockEntry::Value(value)) => order = value.order(),
            ("uuid", BlockEntry::Value(value)) => trace.uuid = uuid(&value.into_text()),
            ("major", BlockEntry::Value(value)) if value.number() != Some(1) => {
                return Err(parser.parse_error("before this, major = 1"));
            }
            ("packet.header", BlockEntry::Type(ty)) => trace.packet_header = Some(ty),
            _ => {}
        }
        Ok(())
    })?;
    trace.order = order.ok_or_else(|| parser.parse_error("before this, byte_order = le, be or network"))?;
    Ok(trace)
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> =
        text.chars().filter(|c| *c != '-').map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    bytes.try_into().ok().filter(|_| digits.len() == 32)
}

fn clock(parser: &mut Parser<'_>) -> Result<Clock, ParseError> {
    let mut clock = Clock {
        name: Arc::from(""),
        description: String::new(),
        uuid: String::new(),
        freq: 1_000_000_000,
        offset_s: 0,
        offset: 0,
        absolute: false,
    };
    entries(parser, |parser, name, entry| {
        let BlockEntry::Value(value) = entry else { return Ok(()) };
        match name.as_str() {
            "name" => clock.name = Arc::from(value.into_text()),
            "description" => clock.description = value.into_text(),
            "uuid" => clock.uuid = value.into_text(),
            "freq" => clock.freq = number(parser, &value)?,
            "offset_s" => clock.offset_s = number(parser, &value)?,
            "offset" => clock.offset = number(parser, &value)?,
            "absolute" => clock.absolute = value.number() == Some(1),
            _ => {}
        }
        Ok(())
    })?;
    if clock.freq == 0 {
        Err(parser.parse_error("before this, a frequency that is not 0"))
    } else {
        Ok(clock)
    }
}

fn stream(parser: &mut Parser<'_>) -> Result<Stream, ParseError> {
    let mut stream = Stream::default();
    entries(parser, |parser, name, entry| {
        match (name.as_str(), entry) {
            ("id", BlockEntry::Value(value)) => stream.id = number(parser, &value)?,
            ("packet.context", BlockEntry::Type(ty)) => stream.packet_context = Some(ty),
            ("event.header", BlockEntry::Type(ty)) => stream.event_header = Some(ty),
            ("event.context", BlockEntry::Type(ty)) => stream.event_context = Some(ty),
            _ => {}
        }
        Ok(())
    })?;
    Ok(stream)
}

fn event(parser: &mut Parser<'_>) -> Result<EventDeclaration, ParseError> {
    let mut event = EventDeclaration::default();
    entries(parser, |parser, name, entry| {
        match (name.as_str(), entry) {
            ("name", BlockEntry::Value(value)) => event.name = value.into_text(),
            ("id", BlockEntry::Value(value)) => event.id = number(parser, &value)?,
            ("stream_id", BlockEntry::Value(value)) => event.stream_id = Some(number(parser, &value)?),
            ("context", BlockEntry::Type(ty)) => event.context = Some(ty),
            ("fields", BlockEntry::Type(ty)) => event.fields = Some(ty),
            _ => {}
        }
        Ok(())
    })?;
    Ok(event)
}
