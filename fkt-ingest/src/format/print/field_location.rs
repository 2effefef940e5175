//! The position of a field's value in a record, and its type.

use super::types::CType;
use crate::cut::ByteOrder;
use crate::format::machine::Machine;
use crate::format::number::Shape;
use crate::format::text::FieldFormat;

/// A field that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldLocation {
    pub(crate) offset: u32,
    pub(crate) size: u32,
    pub(crate) kind: LocationKind,
    /// The type of a number, or of the elements of an array.
    pub(crate) element: CType,
    pub(crate) machine: Machine,
}

/// How the bytes of a field are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocationKind {
    /// At its offset.
    Number,
    /// At its offset; if the size is 0, to the end of the record.
    Array,
    /// At the position in a 32-bit word at its offset, from the start of the record.
    Located,
    /// The same, from the end of that word.
    LocatedAfterWord,
}

impl FieldLocation {
    /// `None` if the field is neither a number nor an array.
    pub(crate) fn of(field: &FieldFormat, machine: Machine) -> Option<FieldLocation> {
        let located = |prefix| field.c_type.strip_prefix(prefix);
        let (c_type, kind) = if let Some(c_type) = located("__data_loc ") {
            (c_type, LocationKind::Located)
        } else if let Some(c_type) = located("__rel_loc ") {
            (c_type, LocationKind::LocatedAfterWord)
        } else if field.array.is_some() || Shape::new(field.size, false, machine.order).is_none() {
            (field.c_type.as_str(), LocationKind::Array)
        } else {
            (field.c_type.as_str(), LocationKind::Number)
        };
        let element = match kind {
            LocationKind::Number => CType { size: field.size as u8, signed: field.signed, pointer: false },
            _ => element(field, c_type, machine),
        };
        Some(FieldLocation { offset: field.offset, size: field.size, kind, element, machine })
    }

    /// The word with the position of a located field.
    pub(crate) fn of_word(field: &FieldFormat, machine: Machine) -> FieldLocation {
        let element = CType { size: 4, signed: false, pointer: false };
        FieldLocation { offset: field.offset, size: 4, kind: LocationKind::Number, element, machine }
    }

    /// The bytes of the field.
    pub(crate) fn bytes<'r>(&self, record: &'r [u8]) -> Option<&'r [u8]> {
        let here = record.get(self.offset as usize..)?;
        match self.kind {
            LocationKind::Number => here.get(..self.size as usize),
            LocationKind::Array if self.size == 0 => Some(here),
            LocationKind::Array => here.get(..self.size as usize),
            LocationKind::Located => located(here, record, self.machine.order),
            LocationKind::LocatedAfterWord => located(here, here.get(4..)?, self.machine.order),
        }
    }

    /// The number in these bytes, which are those of the field or of an element.
    pub(crate) fn number(element: CType, machine: Machine, bytes: &[u8]) -> Option<i64> {
        Shape::new(u32::from(element.size), element.signed, machine.order)?.read(bytes)
    }
}

fn located<'r>(word: &[u8], base: &'r [u8], order: ByteOrder) -> Option<&'r [u8]> {
    let word = order.u32(*word.first_chunk()?);
    let (from, len) = ((word & 0xffff) as usize, (word >> 16) as usize);
    base.get(from..)?.get(..len)
}

/// The type of an array's elements; from its size and count if its name is unknown.
fn element(field: &FieldFormat, c_type: &str, machine: Machine) -> CType {
    let c_type = c_type.trim().trim_end_matches("[]").trim_end();
    let parsed = CType::parse(c_type, machine);
    if parsed.pointer {
        return CType { size: machine.long_size, signed: false, pointer: false };
    }
    let count = field.array.as_deref().and_then(|count| count.parse::<u32>().ok()).filter(|count| *count > 0);
    let by_count = count.filter(|count| field.size.is_multiple_of(*count)).map(|count| field.size / count);
    match by_count {
        Some(size @ (1 | 2 | 4 | 8)) => {
            CType { size: size as u8, signed: field.signed && parsed.signed, pointer: false }
        }
        _ if parsed.size > 0 => parsed,
        _ => CType { size: 1, signed: false, pointer: false },
    }
}
