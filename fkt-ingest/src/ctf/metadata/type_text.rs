//! Parses types.

use std::sync::Arc;

use crate::error::ParseError;

use super::attributes::attributes;
use super::labels::Labels;
use super::parser::{MAX_DEPTH, Parser};
use super::token::{Token, unescaped};
use super::types::{Array, Enum, Float, Integer, Length, Mapping, Struct, Type, Variant};

/// The largest alignment that is accepted: 8 KiB.
const MAX_ALIGN: i128 = 1 << 16;

/// Reads `typealias …;`, `typedef …;`, `struct name {…};` and the like; `false` if there is none.
pub(super) fn declaration(parser: &mut Parser<'_>) -> Result<bool, ParseError> {
    match parser.token() {
        Token::Word("typealias") => typealias(parser)?,
        Token::Word("typedef") => {
            parser.advance()?;
            for (name, ty) in declarators(parser)? {
                parser.names().aliases.insert(name.to_string(), ty);
            }
        }
        Token::Word("struct" | "variant" | "enum") => {
            type_of(parser)?;
            parser.sign(";")?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `typealias integer {…} := unsigned long;`
fn typealias(parser: &mut Parser<'_>) -> Result<(), ParseError> {
    parser.advance()?;
    let ty = type_of(parser)?;
    parser.sign(":=")?;
    let name = pieces(parser)?.join(" ");
    if name.is_empty() {
        return Err(parser.parse_error("the name of a type"));
    }
    parser.names().aliases.insert(name, ty);
    parser.sign(";")
}

/// A type without a field name.
pub(super) fn type_of(parser: &mut Parser<'_>) -> Result<Type, ParseError> {
    match declared(parser)? {
        Some(ty) => Ok(ty),
        None => {
            let name = pieces(parser)?;
            alias(parser, &name)
        }
    }
}

/// `type name, name[8], name[len];`, and `struct {…};` alone.
fn declarators(parser: &mut Parser<'_>) -> Result<Vec<(Arc<str>, Type)>, ParseError> {
    let mut found = Vec::new();
    let (base, mut name) = match declared(parser)? {
        Some(_) if parser.take_sign(";")? => return Ok(found),
        Some(ty) => (ty, parser.word()?),
        None => {
            let mut pieces = pieces(parser)?;
            let name = pieces.pop().filter(|_| !pieces.is_empty());
            let Some(name) = name else { return Err(parser.parse_error("a type and a name")) };
            (alias(parser, &pieces)?, name)
        }
    };
    loop {
        parser.item()?;
        found.push((Arc::from(name), arrays(parser, base.clone())?));
        if parser.take_sign(";")? {
            return Ok(found);
        }
        parser.sign(",")?;
        name = parser.word()?;
    }
}

/// `[2][len]` after a name: two arrays of `len` elements each.
fn arrays(parser: &mut Parser<'_>, base: Type) -> Result<Type, ParseError> {
    let mut lengths = Vec::new();
    while parser.take_sign("[")? {
        lengths.push(match parser.token() {
            Token::Number(number) => {
                parser.advance()?;
                Length::Fixed(number)
            }
            _ => Length::By(parser.reference()?),
        });
        parser.sign("]")?;
        if base.depth() as usize + lengths.len() > MAX_DEPTH as usize {
            return Err(too_deep(parser));
        }
    }
    Ok(lengths.into_iter().rev().fold(base, |element, length| {
        let depth = element.depth() + 1;
        Type::Array(Arc::new(Array { element, length, depth }))
    }))
}

fn too_deep(parser: &Parser<'_>) -> ParseError {
    parser.parse_error(format!("at most {MAX_DEPTH} nested types"))
}

/// Words and stars: `unsigned long`, `char *`. `const` and `volatile` are ignored.
fn pieces<'a>(parser: &mut Parser<'a>) -> Result<Vec<&'a str>, ParseError> {
    let mut pieces = Vec::new();
    while let Token::Word(piece) | Token::Sign(piece @ "*") = parser.token() {
        parser.item()?;
        parser.advance()?;
        if !matches!(piece, "const" | "volatile") {
            pieces.push(piece);
        }
    }
    Ok(pieces)
}

fn alias(parser: &Parser<'_>, pieces: &[&str]) -> Result<Type, ParseError> {
    let name = pieces.join(" ");
    let known = parser.find(|names| names.aliases.get(&name));
    let shown: String = name.chars().take(60).collect();
    known.ok_or_else(|| parser.parse_error(format!("before this, a declared type instead of {shown:?}")))
}

/// A type that begins with a keyword; `None` if it begins with a name.
fn declared(parser: &mut Parser<'_>) -> Result<Option<Type>, ParseError> {
    let Token::Word(word) = parser.token() else { return Ok(None) };
    let read: fn(&mut Parser<'_>) -> Result<Type, ParseError> = match word {
        "integer" => integer,
        "floating_point" => floating_point,
        "string" => string,
        "enum" => enumeration,
        "struct" => structure,
        "variant" => variant,
        _ => return Ok(None),
    };
    parser.advance()?;
    let ty = parser.nested(read)?;
    if ty.depth() > MAX_DEPTH {
        return Err(too_deep(parser));
    }
    Ok(Some(ty))
}

fn align(parser: &Parser<'_>, number: Option<i128>) -> Result<u32, ParseError> {
    match number {
        Some(align @ 1..=MAX_ALIGN) if (align as u32).is_power_of_two() => Ok(align as u32),
        Some(0) => Ok(1),
        _ => Err(parser
            .parse_error(format!("before this, an alignment that is a power of two, at most {MAX_ALIGN}"))),
    }
}

fn integer(parser: &mut Parser<'_>) -> Result<Type, ParseError> {
    let mut integer =
        Integer { size: 0, align: 0, signed: false, order: None, base: 10, is_text: false, clock: None };
    for (name, value) in attributes(parser)? {
        match name.as_str() {
            "size" => match value.number() {
                Some(size @ 1..=64) => integer.size = size as u8,
                _ => return Err(parser.parse_error("before this, a size of 1 to 64 bits")),
            },
            "align" => integer.align = align(parser, value.number())?,
            "signed" => integer.signed = value.number() == Some(1),
            "byte_order" => integer.order = value.order(),
            "base" => integer.base = value.base(),
            "encoding" => integer.is_text = value.is_text(),
            "map" => integer.clock = value.clock(),
            _ => {}
        }
    }
    if integer.size == 0 {
        return Err(parser.parse_error("before this, an integer with a size"));
    }
    if integer.align == 0 {
        integer.align = if integer.size.is_multiple_of(8) { 8 } else { 1 };
    }
    Ok(Type::Integer(integer))
}

fn floating_point(parser: &mut Parser<'_>) -> Result<Type, ParseError> {
    let (mut digits, mut own_align, mut order) = (0, 8, None);
    for (name, value) in attributes(parser)? {
        match name.as_str() {
            "exp_dig" | "mant_dig" => digits += value.number().filter(|n| (0..=64).contains(n)).unwrap_or(0),
            "align" => own_align = align(parser, value.number())?,
            "byte_order" => order = value.order(),
            _ => {}
        }
    }
    match digits {
        32 | 64 => Ok(Type::Float(Float { size: digits as u8, align: own_align, order })),
        _ => Err(parser.parse_error("before this, a floating-point number of 32 or 64 bits")),
    }
}

fn string(parser: &mut Parser<'_>) -> Result<Type, ParseError> {
    if parser.is_sign("{") {
        attributes(parser)?;
    }
    Ok(Type::Text)
}

/// The name after `struct`, `variant` or `enum`, if there is one.
fn name<'a>(parser: &mut Parser<'a>) -> Result<Option<&'a str>, ParseError> {
    match parser.token() {
        Token::Word(word) => parser.advance().map(|_| Some(word)),
        _ => Ok(None),
    }
}

/// `enum name : container { label, label = 3, label = 4 ... 8 }`
fn enumeration(parser: &mut Parser<'_>) -> Result<Type, ParseError> {
    let name = name(parser)?;
    let container = if parser.take_sign(":")? { Some(type_of(parser)?) } else { None };
    if !parser.is_sign("{") {
        let known = name.and_then(|name| parser.find(|names| names.enums.get(name)));
        return known.map(Type::Enum).ok_or_else(|| parser.parse_error("a declared enumeration"));
    }
    let container = match container {
        Some(ty) => ty,
        None => alias(parser, &["int"])?,
    };
    let Type::Integer(container) = container else {
        return Err(parser.parse_error("before this, an integer as container"));
    };
    let mut mappings: Vec<Mapping> = Vec::new();
    parser.block(|parser| {
        let next = mappings.last().map_or(0, |last| last.high + 1);
        mappings.push(mapping(parser, next)?);
        if parser.is_sign("}") { Ok(()) } else { parser.sign(",") }
    })?;
    let labels =
        Labels::new(container.signed, mappings.iter().map(|m| (Arc::clone(&m.label), m.low, m.high)));
    let ty = Arc::new(Enum { container, mappings, labels: Arc::new(labels) });
    if let Some(name) = name {
        parser.names().enums.insert(name.to_owned(), Arc::clone(&ty));
    }
    Ok(Type::Enum(ty))
}

fn mapping(parser: &mut Parser<'_>, next: i128) -> Result<Mapping, ParseError> {
    let label = match parser.advance()? {
        Token::Word(word) => Arc::from(word),
        Token::Text(text) => Arc::from(unescaped(text)),
        _ => return Err(parser.parse_error("before this, a label")),
    };
    if !parser.take_sign("=")? {
        return Ok(Mapping { label, low: next, high: next });
    }
    let low = parser.number()?;
    let high = if parser.take_sign("...")? { parser.number()? } else { low };
    Ok(Mapping { label, low, high })
}

/// `struct name { … } align(8)`
fn structure(parser: &mut Parser<'_>) -> Result<Type, ParseError> {
    let name = name(parser)?;
    if !parser.is_sign("{") {
        let known = name.and_then(|name| parser.find(|names| names.structs.get(name)));
        return known.map(Type::Struct).ok_or_else(|| parser.parse_error("a declared structure"));
    }
    let fields = members(parser)?;
    let mut own = 1;
    if parser.is_word("align") {
        parser.advance()?;
        parser.sign("(")?;
        let number = parser.number()?;
        own = align(parser, Some(number))?;
        parser.sign(")")?;
    }
    let align = fields.iter().map(|(_, ty)| ty.align()).fold(own, u32::max);
    let depth = depth_of(&fields);
    let ty = Arc::new(Struct { fields, align, depth });
    if let Some(name) = name {
        parser.names().structs.insert(name.to_owned(), Arc::clone(&ty));
    }
    Ok(Type::Struct(ty))
}

/// `variant name <tag> { … }`; a named one may get its tag at its use.
fn variant(parser: &mut Parser<'_>) -> Result<Type, ParseError> {
    let name = name(parser)?;
    let mut tag = None;
    if parser.take_sign("<")? {
        tag = Some(parser.reference()?);
        parser.sign(">")?;
    }
    if !parser.is_sign("{") {
        let known = name.and_then(|name| parser.find(|names| names.variants.get(name)));
        let known = known.ok_or_else(|| parser.parse_error("a declared variant"))?;
        let Some(tag) = tag else { return Ok(Type::Variant(known)) };
        let (options, depth) = (known.options.clone(), known.depth);
        for _ in &options {
            parser.item()?;
        }
        return Ok(Type::Variant(Arc::new(Variant { tag: Some(tag), options, depth })));
    }
    let options = members(parser)?;
    let depth = depth_of(&options);
    let ty = Arc::new(Variant { tag, options, depth });
    if let Some(name) = name {
        parser.names().variants.insert(name.to_owned(), Arc::clone(&ty));
    }
    Ok(Type::Variant(ty))
}

fn members(parser: &mut Parser<'_>) -> Result<Vec<(Arc<str>, Type)>, ParseError> {
    let mut members = Vec::new();
    parser.block(|parser| {
        match parser.token() {
            Token::Word("typealias" | "typedef") => declaration(parser).map(|_| ())?,
            _ => members.extend(declarators(parser)?),
        }
        Ok(())
    })?;
    Ok(members)
}

fn depth_of(members: &[(Arc<str>, Type)]) -> u32 {
    members.iter().map(|(_, ty)| ty.depth()).max().unwrap_or(0) + 1
}
