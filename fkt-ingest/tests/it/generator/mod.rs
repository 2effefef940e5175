//! Writes a trace.dat from known events, in either byte order and word size, either version, any page size and any
//! compression, so that the expected result of a reader is known. It shares no code with the readers and the writer of
//! the crate.

mod layout;
mod pages;

use pages::Pages;

/// How the bytes of a file are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) version: u32,
    pub(crate) big_endian: bool,
    /// Bytes of a `long`: 4 or 8.
    pub(crate) long: usize,
    pub(crate) page_size: usize,
    /// `none`, `zlib` or `zstd`; version 7 only.
    pub(crate) compression: &'static str,
}

impl Shape {
    /// Version 7, little endian, 64 bits, pages of 4 KiB, uncompressed.
    pub(crate) const PLAIN: Shape =
        Shape { version: 7, big_endian: false, long: 8, page_size: 4096, compression: "none" };

    pub(crate) fn u16(self, number: u16) -> [u8; 2] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    pub(crate) fn u32(self, number: u32) -> [u8; 4] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    pub(crate) fn u64(self, number: u64) -> [u8; 8] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    /// A number of `size` bytes.
    pub(crate) fn number(self, number: i64, size: usize) -> Vec<u8> {
        let mut bytes = number.to_le_bytes()[..size].to_vec();
        if self.big_endian {
            bytes.reverse();
        }
        bytes
    }
}

/// The content of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// Folder and format text of each event.
    pub(crate) formats: Vec<(String, String)>,
    /// The first is the top buffer.
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) kallsyms: String,
    pub(crate) printk_formats: String,
    pub(crate) cmdlines: String,
    /// Options in addition to those that are always present: id and data.
    pub(crate) options: Vec<(u16, Vec<u8>)>,
}

/// A tracefs instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) clock: String,
    /// The records of each CPU.
    pub(crate) cpus: Vec<Vec<Record>>,
}

/// A record, from `common_type` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) time: u64,
    pub(crate) payload: Vec<u8>,
    /// Number of events lost before it; it then begins a page.
    pub(crate) lost_before: Option<u32>,
}

impl Record {
    pub(crate) fn new(time: u64, payload: Vec<u8>) -> Record {
        Record { time, payload, lost_before: None }
    }
}

/// The bytes of the file.
pub(crate) fn trace_dat(shape: Shape, content: &Content) -> Vec<u8> {
    let regions: Vec<Vec<Vec<u8>>> = content
        .buffers
        .iter()
        .map(|buffer| buffer.cpus.iter().map(|records| Pages::of(shape, records)).collect())
        .collect();
    match shape.version {
        6 => layout::version_6(shape, content, &regions),
        _ => layout::version_7(shape, content, &regions),
    }
}

/// xorshift64: the same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
