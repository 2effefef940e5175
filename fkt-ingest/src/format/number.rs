//! A number in a record: where it is, and how its bytes are read.

use sigmund_model::{Cpu, Lwp};

use super::machine::Machine;
use crate::cut::ByteOrder;

/// Where a number is in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) offset: u32,
    pub(super) shape: Shape,
}

/// Size, sign and byte order in one word, so that reading looks at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    /// Of either sign: the bits are kept.
    Eight,
    BigU16,
    BigI16,
    BigU32,
    BigI32,
    BigEight,
}

impl Shape {
    /// `None` for sizes that no number has.
    pub(super) fn new(size: u32, signed: bool, order: ByteOrder) -> Option<Shape> {
        Some(match (size, signed, order) {
            (1, false, _) => Shape::U8,
            (1, true, _) => Shape::I8,
            (2, false, ByteOrder::Little) => Shape::U16,
            (2, true, ByteOrder::Little) => Shape::I16,
            (4, false, ByteOrder::Little) => Shape::U32,
            (4, true, ByteOrder::Little) => Shape::I32,
            (8, _, ByteOrder::Little) => Shape::Eight,
            (2, false, ByteOrder::Big) => Shape::BigU16,
            (2, true, ByteOrder::Big) => Shape::BigI16,
            (4, false, ByteOrder::Big) => Shape::BigU32,
            (4, true, ByteOrder::Big) => Shape::BigI32,
            (8, _, ByteOrder::Big) => Shape::BigEight,
            _ => return None,
        })
    }

    /// The number that `bytes` begin with.
    #[inline]
    pub(super) fn read(self, bytes: &[u8]) -> Option<i64> {
        Some(match self {
            Shape::U8 => i64::from(*bytes.first()?),
            Shape::I8 => i64::from(*bytes.first()? as i8),
            Shape::U16 => i64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            Shape::I16 => i64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
            Shape::U32 => i64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
            Shape::I32 => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
            Shape::Eight => i64::from_le_bytes(*bytes.first_chunk()?),
            Shape::BigU16 => i64::from(u16::from_be_bytes(*bytes.first_chunk()?)),
            Shape::BigI16 => i64::from(i16::from_be_bytes(*bytes.first_chunk()?)),
            Shape::BigU32 => i64::from(u32::from_be_bytes(*bytes.first_chunk()?)),
            Shape::BigI32 => i64::from(i32::from_be_bytes(*bytes.first_chunk()?)),
            Shape::BigEight => i64::from_be_bytes(*bytes.first_chunk()?),
        })
    }
}

impl Number {
    /// `None` for sizes that no number has.
    pub(super) fn new(offset: u32, size: u32, signed: bool, machine: Machine) -> Option<Number> {
        Some(Number { offset, shape: Shape::new(size, signed, machine.order)? })
    }

    #[inline]
    pub(super) fn read(self, record: &[u8]) -> Option<i64> {
        self.shape.read(record.get(self.offset as usize..)?)
    }

    pub(super) fn read_lwp(self, record: &[u8]) -> Option<Lwp> {
        self.read(record).and_then(|pid| u32::try_from(pid).ok()).map(Lwp)
    }

    pub(super) fn read_cpu(self, record: &[u8]) -> Option<Cpu> {
        self.read(record).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_value_in_either_order_and_its_sign() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for (size, value) in [(1, -2i64), (2, -300), (4, -70_000), (8, -5_000_000_000)] {
                let bytes = match order {
                    ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
                    ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
                };
                let read = |signed| Shape::new(size as u32, signed, order).unwrap().read(&bytes);
                let unsigned = value & (u64::MAX >> (64 - 8 * size)) as i64;
                assert_eq!((read(true), read(false)), (Some(value), Some(unsigned)), "{order:?}");
                assert_eq!(Shape::new(size as u32, true, order).unwrap().read(&bytes[1..]), None);
            }
        }
        assert_eq!(Shape::new(3, true, ByteOrder::Little), None);
    }
}
