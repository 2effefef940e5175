//! Numbers of any size at any bit position of a packet, in either byte order.
//!
//! Little endian fills each byte from its lowest bit upwards, big endian from its highest downwards:
//!
//! ```text
//!   byte 0          byte 1              id: 5 bits, then time: 11 bits
//!   t t t i i i i i t t t t t t t t     little: the low 5 bits of byte 0 are the id
//!   i i i i i t t t t t t t t t t t     big: the high 5 bits of byte 0 are the id
//! ```

use std::ffi::CStr;

use super::metadata::Order;

/// Reads forward through the content of a packet. Positions are in bits from the start of the packet.
#[derive(Clone, Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    pos: u64,
    /// At most the end of `bytes`.
    end: u64,
}

/// The content ends within the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PastEnd;

impl<'a> Bits<'a> {
    /// The first `end` bits of a packet that begins with `bytes`, from bit `pos` on.
    pub(super) fn new(bytes: &'a [u8], pos: u64, end: u64) -> Bits<'a> {
        let end = end.min(bytes.len() as u64 * 8);
        Bits { bytes, pos, end }
    }

    #[inline]
    pub(super) fn pos(&self) -> u64 {
        self.pos
    }

    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.pos >= self.end
    }

    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.pos)
    }

    /// Moves to the next multiple of `mask + 1`, which is a power of two.
    #[inline]
    pub(super) fn align(&mut self, mask: u32) {
        let mask = u64::from(mask);
        self.pos = (self.pos + mask) & !mask;
    }

    /// The bytes of a number that begins at a byte boundary.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], PastEnd> {
        let end = self.pos + N as u64 * 8;
        if end > self.end {
            return Err(PastEnd);
        }
        let at = (self.pos >> 3) as usize;
        let bytes = self.bytes.get(at..).and_then(|b| b.first_chunk::<N>()).ok_or(PastEnd)?;
        self.pos = end;
        Ok(*bytes)
    }

    /// `len` bytes from the next byte boundary on.
    #[inline]
    pub(super) fn bytes(&mut self, len: u64) -> Result<&'a [u8], PastEnd> {
        self.align(7);
        if len > self.left() / 8 {
            return Err(PastEnd);
        }
        let at = (self.pos >> 3) as usize;
        let bytes = self.bytes.get(at..at + len as usize).ok_or(PastEnd)?;
        self.pos += len * 8;
        Ok(bytes)
    }

    /// The bytes up to the next NUL, which is consumed as well.
    #[inline]
    pub(super) fn text(&mut self) -> Result<&'a [u8], PastEnd> {
        self.align(7);
        let from = (self.pos >> 3) as usize;
        let rest = self.bytes.get(from..(self.end >> 3) as usize).ok_or(PastEnd)?;
        let text = CStr::from_bytes_until_nul(rest).map_err(|_| PastEnd)?.to_bytes();
        self.pos += (text.len() as u64 + 1) * 8;
        Ok(text)
    }

    /// The eight bytes from here, without consuming them, if the position is at a byte boundary and the content has
    /// `size` more bits.
    #[inline]
    pub(super) fn peek(&self, size: u8) -> Option<[u8; 8]> {
        let fits = self.pos + u64::from(size) <= self.end;
        let bytes = self.bytes.get((self.pos >> 3) as usize..)?.first_chunk::<8>()?;
        fits.then_some(*bytes)
    }

    /// Consumes bits that were peeked at.
    #[inline]
    pub(super) fn skip(&mut self, size: u8) {
        self.pos += u64::from(size);
    }

    /// An unsigned number of 1 to 64 bits at any bit position.
    #[inline]
    pub(super) fn number(&mut self, size: u8, order: Order) -> Result<u64, PastEnd> {
        let size = u32::from(size);
        let end = self.pos + u64::from(size);
        if end > self.end {
            return Err(PastEnd);
        }
        let (at, shift) = ((self.pos >> 3) as usize, (self.pos & 7) as u32);
        let window = self.window(at);
        let value = match order {
            Order::Little => u128::from_le_bytes(window) >> shift,
            Order::Big => u128::from_be_bytes(window) << shift >> (128 - size),
        };
        self.pos = end;
        Ok(value as u64 & (u64::MAX >> (64 - size)))
    }

    /// 16 bytes from `at` on, with zeros after the end.
    #[inline]
    fn window(&self, at: usize) -> [u8; 16] {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if let Some(window) = rest.first_chunk::<16>() {
            return *window;
        }
        let mut window = [0; 16];
        window[..rest.len()].copy_from_slice(rest);
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The drawing at the top of this file.
    #[test]
    fn each_order_takes_its_bits_from_its_end_of_the_byte() {
        let bytes = [0b1010_0011, 0b1111_0001];
        let mut bits = Bits::new(&bytes, 0, 16);
        assert_eq!(bits.number(5, Order::Little), Ok(0b00011));
        assert_eq!(bits.number(11, Order::Little), Ok(0b111_1000_1101));
        let mut bits = Bits::new(&bytes, 0, 16);
        assert_eq!(bits.number(5, Order::Big), Ok(0b10100));
        assert_eq!(bits.number(11, Order::Big), Ok(0b011_1111_0001));
        assert_eq!(bits.number(1, Order::Big), Err(PastEnd));
    }

    // Every size at every bit, against the bits one by one.
    #[test]
    fn any_size_at_any_bit_is_its_bits_in_order() {
        let bytes: Vec<u8> = (0..20u32).map(|i| (i * 73 + 41) as u8).collect();
        let bit = |at: u64, order| {
            let byte = bytes[at as usize / 8];
            u64::from(match order {
                Order::Little => byte >> (at % 8) & 1,
                Order::Big => byte >> (7 - at % 8) & 1,
            })
        };
        for order in [Order::Little, Order::Big] {
            for (pos, size) in (0..90).flat_map(|pos| (1..=64).map(move |size| (pos, size))) {
                let expected = (0..u64::from(size)).fold(0, |value, i| match order {
                    Order::Little => value | bit(pos + i, order) << i,
                    Order::Big => value << 1 | bit(pos + i, order),
                });
                let mut bits = Bits::new(&bytes, pos, 160);
                let fits = pos + u64::from(size) <= 160;
                assert_eq!(bits.number(size, order), if fits { Ok(expected) } else { Err(PastEnd) });
            }
        }
    }

    #[test]
    fn nothing_is_read_after_the_end() {
        let mut bits = Bits::new(b"ab\0cdef\0", 0, 40);
        assert_eq!(bits.text(), Ok(&b"ab"[..]));
        assert_eq!(bits.text(), Err(PastEnd));
        assert_eq!(bits.bytes(3), Err(PastEnd));
        assert_eq!(bits.array::<4>(), Err(PastEnd));
        assert_eq!(bits.bytes(2), Ok(&b"cd"[..]));
        assert!(bits.is_at_end());
    }
}
