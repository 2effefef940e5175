//! The types that a metadata declares. Names are resolved; sizes and depths are within limits.

use std::sync::Arc;

use super::labels::Labels;

/// The order in which bytes, and the bits within them, form a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// A reference to a field: `len`, or `stream.event.header.id`.
pub(crate) type Path = Vec<Arc<str>>;

#[derive(Clone, Debug)]
pub(crate) enum Type {
    Integer(Integer),
    Float(Float),
    Enum(Arc<Enum>),
    /// Bytes up to a NUL.
    Text,
    Struct(Arc<Struct>),
    Variant(Arc<Variant>),
    Array(Arc<Array>),
}

#[derive(Clone, Debug)]
pub(crate) struct Integer {
    /// In bits, 1 to 64.
    pub(crate) size: u8,
    /// In bits, a power of two.
    pub(crate) align: u32,
    pub(crate) signed: bool,
    /// `None` is the byte order of the trace.
    pub(crate) order: Option<Order>,
    pub(crate) base: u8,
    /// Whether it is a character, provided that it has 8 bits.
    pub(crate) is_text: bool,
    /// The clock whose value this field is.
    pub(crate) clock: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Float {
    /// In bits, 32 or 64.
    pub(crate) size: u8,
    pub(crate) align: u32,
    pub(crate) order: Option<Order>,
}

#[derive(Debug)]
pub(crate) struct Enum {
    pub(crate) container: Integer,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) labels: Arc<Labels>,
}

/// All values from `low` to `high` have this label.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) label: Arc<str>,
    pub(crate) low: i128,
    pub(crate) high: i128,
}

#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) fields: Vec<(Arc<str>, Type)>,
    /// In bits: the largest of its own and its fields'.
    pub(crate) align: u32,
    pub(crate) depth: u32,
}

#[derive(Debug)]
pub(crate) struct Variant {
    /// The field that selects the option.
    pub(crate) tag: Option<Path>,
    pub(crate) options: Vec<(Arc<str>, Type)>,
    pub(crate) depth: u32,
}

#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) element: Type,
    pub(crate) length: Length,
    pub(crate) depth: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Length {
    Fixed(u64),
    /// The field that holds the length.
    By(Path),
}

impl Type {
    /// In bits.
    pub(crate) fn align(&self) -> u32 {
        match self {
            Type::Integer(integer) => integer.align,
            Type::Float(float) => float.align,
            Type::Enum(ty) => ty.container.align,
            Type::Text => 8,
            Type::Struct(ty) => ty.align,
            // Each option has its own alignment.
            Type::Variant(_) => 1,
            Type::Array(array) => array.element.align(),
        }
    }

    /// The nesting depth of the type.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Type::Integer(_) | Type::Float(_) | Type::Enum(_) | Type::Text => 1,
            Type::Struct(ty) => ty.depth,
            Type::Variant(ty) => ty.depth,
            Type::Array(ty) => ty.depth,
        }
    }
}
