//! A number in a record: its position, and how its bytes are read.

use sigmund_model::{Lwp, Params};

use super::machine::Machine;
use crate::cut::ByteOrder;

/// The position of a number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) offset: u32,
    pub(super) shape: Shape,
}

/// Size, sign and byte order in one word, so that reading needs one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    /// Signed or unsigned: the bits are kept.
    Eight,
    BigU16,
    BigI16,
    BigU32,
    BigI32,
    BigEight,
}

impl Shape {
    /// `None` for sizes that are not those of a number.
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

    fn size(self) -> usize {
        match self {
            Shape::U8 | Shape::I8 => 1,
            Shape::U16 | Shape::I16 | Shape::BigU16 | Shape::BigI16 => 2,
            Shape::U32 | Shape::I32 | Shape::BigU32 | Shape::BigI32 => 4,
            Shape::Eight | Shape::BigEight => 8,
        }
    }

    /// The number at the start of `bytes`.
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
    /// `None` for sizes that are not those of a number.
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
}

/// Consecutive numbers of one shape: the parameters of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    first: Number,
    count: u32,
}

impl Run {
    pub(super) fn of(first: Number) -> Run {
        Run { first, count: 1 }
    }

    /// This run with one more number, if `next` follows it.
    pub(super) fn with(self, next: Number) -> Option<Run> {
        let end = self.first.offset.checked_add(self.count * self.first.shape.size() as u32)?;
        let follows = next.shape == self.first.shape && next.offset == end;
        follows.then_some(Run { count: self.count + 1, ..self })
    }

    /// Adds its numbers to `params`; numbers that the record does not contain are unknown.
    ///
    /// Inlined, except for rare cases: with a call for each step, decoding a trace took 6 % longer.
    #[inline(always)]
    pub(super) fn push(self, record: &[u8], params: &mut Params) {
        let len = self.count as usize * self.first.shape.size();
        let bytes = record.get(self.first.offset as usize..).and_then(|bytes| bytes.get(..len));
        match (self.first.shape, bytes) {
            (Shape::Eight, Some(bytes)) => push_all(bytes, i64::from_le_bytes, params),
            (Shape::I32, Some(bytes)) => {
                push_all(bytes, |chunk| i64::from(i32::from_le_bytes(chunk)), params);
            }
            (Shape::U32, Some(bytes)) => {
                push_all(bytes, |chunk| i64::from(u32::from_le_bytes(chunk)), params);
            }
            _ => self.push_each(record, params),
        }
    }

    #[inline(never)]
    fn push_each(self, record: &[u8], params: &mut Params) {
        let Run { first, count } = self;
        for index in 0..count {
            let offset = first.offset + index * first.shape.size() as u32;
            match (Number { offset, ..first }).read(record) {
                Some(number) => params.push_number(number),
                None => params.push_unknown(),
            }
        }
    }
}

#[inline]
fn push_all<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> i64, params: &mut Params) {
    params.push_numbers(bytes.as_chunks().0.iter().map(|chunk| number(*chunk)));
}

#[cfg(test)]
mod tests {
    use super::*;

    // |8 unused|first|second|third|, and a fourth that is cut off
    #[test]
    fn a_run_gives_what_its_numbers_give_one_by_one() {
        let record: Vec<u8> = (0..42).map(|byte: u8| byte.wrapping_mul(83)).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for (size, signed) in [(1, true), (2, false), (4, true), (4, false), (8, true)] {
                let number = |index: u32| Number {
                    offset: 8 + index * size,
                    shape: Shape::new(size, signed, order).unwrap(),
                };
                let run = (1..4).try_fold(Run::of(number(0)), |run, index| run.with(number(index))).unwrap();
                assert_eq!(run.with(number(5)), None);
                for len in [record.len(), 8 + 3 * size as usize + size as usize / 2] {
                    let (mut together, mut alone) = (Params::default(), Params::default());
                    run.push(&record[..len], &mut together);
                    for index in 0..4 {
                        match number(index).read(&record[..len]) {
                            Some(number) => alone.push_number(number),
                            None => alone.push_unknown(),
                        }
                    }
                    assert_eq!(together, alone, "{size} bytes, {order:?}");
                }
            }
        }
    }

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
