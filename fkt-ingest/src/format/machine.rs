//! The machine whose kernel wrote the records.

use crate::cut::ByteOrder;

/// How it writes numbers, and how it numbers system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) order: ByteOrder,
    /// Bytes of its kernel's `long` and of its pointers: 4 or 8.
    pub(crate) long_size: u8,
    /// Whether numbers of system calls are those of x86-64; otherwise they have no names.
    pub(crate) is_x86_64: bool,
}

#[cfg(test)]
impl Machine {
    /// A little-endian 64-bit one.
    pub(crate) fn little_64(is_x86_64: bool) -> Machine {
        Machine { order: ByteOrder::Little, long_size: 8, is_x86_64 }
    }
}
