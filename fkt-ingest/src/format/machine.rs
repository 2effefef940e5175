//! The machine whose kernel wrote the records.

use crate::cut::ByteOrder;

/// The machine's number formats and system-call numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) order: ByteOrder,
    /// Size of its kernel's `long` and of its pointers in bytes: 4 or 8.
    pub(crate) long_size: u8,
    /// Whether numbers of system calls are those of x86-64; other numbers have no names.
    pub(crate) is_x86_64: bool,
}

#[cfg(test)]
impl Machine {
    /// A little-endian 64-bit machine.
    pub(crate) fn little_64(is_x86_64: bool) -> Machine {
        Machine { order: ByteOrder::Little, long_size: 8, is_x86_64 }
    }
}
