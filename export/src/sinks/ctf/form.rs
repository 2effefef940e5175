//! The form of one parameter: the type declared for its field if it fits, otherwise the parameter's own type.

use std::io::Write;

use sigmund_model::{FieldType, Param};

use super::names::SYMBOL_FOR_NUL;

/// The form in which one parameter is written. An event's class determines the forms of all its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// As declared.
    Declared,
    /// A number where a text is declared, or a number too large for the declared type: signed, 64 bits.
    Wide,
    /// A text where a number is declared.
    Text,
    /// An empty text. babeltrace2 2.0.4 reuses the memory of an event for later events of its class, and shows the
    /// previous text instead of an empty one. A class in which the field is always empty avoids this.
    Empty,
    /// The parameter could not be read: the class lacks the field.
    Absent,
}

/// The types of the metadata, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TsdlType {
    /// An integer type, by its alias.
    Integer(&'static str),
    /// IEEE 754, 64 bits.
    Float,
    /// UTF-8 up to a NUL.
    Text,
}

pub(super) const I64: TsdlType = TsdlType::Integer("int64_t");

impl Form {
    /// Whether it is the type of a field that is declared as a number.
    pub(super) fn is_number(self) -> bool {
        matches!(self, Form::Declared | Form::Wide)
    }

    /// The type of a field in this form.
    pub(super) fn ty(self, declared: FieldType) -> Option<TsdlType> {
        match self {
            Form::Declared => Some(declared_type(declared)),
            Form::Wide => Some(I64),
            Form::Text | Form::Empty => Some(TsdlType::Text),
            Form::Absent => None,
        }
    }
}

fn declared_type(declared: FieldType) -> TsdlType {
    match declared {
        FieldType::U8 | FieldType::Bool => TsdlType::Integer("uint8_t"),
        FieldType::U16 => TsdlType::Integer("uint16_t"),
        FieldType::U32 => TsdlType::Integer("uint32_t"),
        FieldType::U64 | FieldType::Thread => TsdlType::Integer("uint64_t"),
        FieldType::I64 => I64,
        FieldType::Pointer => TsdlType::Integer("pointer_t"),
        FieldType::F64 => TsdlType::Float,
        FieldType::Text => TsdlType::Text,
    }
}

/// Writes a parameter, and returns its form.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, declared: FieldType, param: Option<Param<'_>>) -> Form {
    match param {
        Some(Param { number: Some(number), .. }) => write_number(out, declared, number),
        Some(Param { number: None, text: Some(text) }) => {
            write_text(out, text);
            match declared {
                _ if text.is_empty() => Form::Empty,
                FieldType::Text => Form::Declared,
                _ => Form::Text,
            }
        }
        Some(Param { number: None, text: None }) | None => Form::Absent,
    }
}

#[inline]
fn write_number(out: &mut Vec<u8>, declared: FieldType, number: i64) -> Form {
    // The bits are written unchanged, also those of a `u64`.
    let size = match declared {
        FieldType::U8 | FieldType::Bool => 1,
        FieldType::U16 => 2,
        FieldType::U32 => 4,
        FieldType::U64 | FieldType::I64 | FieldType::F64 | FieldType::Pointer | FieldType::Thread => 8,
        FieldType::Text => 0,
    };
    let fits = size == 8 || (number as u64) >> (8 * size) == 0 && size > 0;
    let size = if fits { size } else { 8 };
    out.extend_from_slice(&number.to_le_bytes()[..size]);
    if fits { Form::Declared } else { Form::Wide }
}

/// Writes any parameter as a text.
pub(super) fn write_as_text(out: &mut Vec<u8>, param: Option<Param<'_>>) {
    let mut text = Vec::new();
    // Writing to a Vec does not fail.
    let _ = match param {
        Some(param) => write!(text, "{param}"),
        None => write!(text, "?"),
    };
    write_text(out, &String::from_utf8_lossy(&text));
}

/// Appends a text. A NUL would end it for readers, so it is replaced by U+2400, the symbol for it.
#[inline]
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    let mut parts = text.split('\0');
    out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        out.extend_from_slice(SYMBOL_FOR_NUL.encode_utf8(&mut [0; 4]).as_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(declared: FieldType, number: Option<i64>, text: Option<&str>) -> (Form, Vec<u8>) {
        let mut out = Vec::new();
        (write(&mut out, declared, Some(Param { number, text })), out)
    }

    #[test]
    fn a_parameter_is_written_as_declared_or_as_what_it_is() {
        assert_eq!(written(FieldType::U16, Some(0x1234), None), (Form::Declared, vec![0x34, 0x12]));
        assert_eq!(written(FieldType::U8, Some(300), None), (Form::Wide, 300i64.to_le_bytes().to_vec()));
        assert_eq!(written(FieldType::U32, Some(-1), None), (Form::Wide, vec![0xff; 8]));
        assert_eq!(written(FieldType::U64, Some(-1), None), (Form::Declared, vec![0xff; 8]));
        assert_eq!(written(FieldType::U64, None, Some("a")), (Form::Text, b"a\0".to_vec()));
        assert_eq!(written(FieldType::Text, None, Some("a\0b")), (Form::Declared, "a\u{2400}b\0".into()));
        assert_eq!(written(FieldType::Text, None, Some("")), (Form::Empty, vec![0]));
        assert_eq!(written(FieldType::Text, Some(7), Some("x")), (Form::Wide, 7i64.to_le_bytes().to_vec()));
        assert_eq!(written(FieldType::Text, None, None), (Form::Absent, vec![]));
    }
}
