//! The binary form of `trace_printk`: a format by address, and its arguments packed after it (`vbin_printf`,
//! lib/vsprintf.c, v6.12).
//!
//! ```text
//!   %d %u %x    4 bytes, aligned to 4; %ld as `long`; 8 bytes are two words, aligned to 4
//!   %c %hhd     1 byte; %hd 2 bytes, aligned to 2
//!   %s          the text and its NUL
//!   %p %pS %ps  as `long`; other extensions of %p were already formatted as text
//!   *           4 bytes, aligned to 4
//! ```

use super::conversion::{Conversion, Length, Piece, Size, pieces};
use super::types::CType;
use super::value::Value;
use crate::format::machine::Machine;
use crate::format::names::Names;
use crate::format::number::Shape;

/// Writes `format` with the arguments in `packed`. A missing argument is a `?`.
pub(crate) fn print(format: &str, packed: &[u8], machine: Machine, names: &Names, out: &mut String) {
    let Some(pieces) = pieces(format) else { return out.push_str(format) };
    let mut arguments = Arguments { packed, at: 0, machine };
    for piece in &pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Conversion(conversion) => {
                let mut sized = |size| match size {
                    Some(Size::Argument) => arguments.number(4, true),
                    _ => None,
                };
                let (width, precision) = (sized(conversion.width), sized(conversion.precision));
                let value = arguments.value(conversion);
                super::write(&conversion.sized(width, precision), value.as_ref(), machine, names, out);
            }
        }
    }
}

struct Arguments<'a> {
    packed: &'a [u8],
    at: usize,
    machine: Machine,
}

impl<'a> Arguments<'a> {
    fn value(&mut self, conversion: &Conversion) -> Option<Value<'a>> {
        let signed = matches!(conversion.kind, 'd' | 'i');
        let number = match (conversion.kind, conversion.length) {
            ('s', _) => return self.text(),
            ('p', _)
                if !matches!(conversion.extension.as_str(), "" | "S" | "s" | "F" | "f" | "B" | "x" | "K") =>
            {
                return self.text();
            }
            ('p', _) => self.number(self.machine.long_size, false),
            ('c', _) => self.number(1, false),
            (_, Length::Char | Length::Short | Length::Int | Length::Long | Length::LongLong) => {
                self.number(conversion.length.size(self.machine), signed)
            }
        };
        Some(Value::Number(number?, !signed))
    }

    fn number(&mut self, size: u8, signed: bool) -> Option<i64> {
        self.at = self.at.next_multiple_of(usize::from(size.min(4)));
        let number =
            Shape::new(u32::from(size), signed, self.machine.order)?.read(self.packed.get(self.at..)?);
        self.at += usize::from(size);
        number
    }

    fn text(&mut self) -> Option<Value<'a>> {
        let bytes = self.packed.get(self.at..)?;
        let len = bytes.iter().position(|b| *b == 0)?;
        self.at += len + 1;
        Some(Value::Bytes { bytes: &bytes[..len], element: CType { size: 1, signed: true, pointer: false } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_arguments_are_taken_with_their_alignment() {
        let mut packed = b"hi\0A".to_vec();
        packed.extend((-5i32).to_le_bytes());
        packed.extend(0x1_0000_0002u64.to_le_bytes());
        let mut out = String::new();
        print("%s %c %d %llx|%d", &packed, Machine::little_64(true), &Names::default(), &mut out);
        assert_eq!(out, "hi A -5 100000002|?");
    }
}
