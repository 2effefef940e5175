//! The records of a file, one after the other, unpacked if they are compressed.
//!
//! ```text
//!   | u32 type | u16 misc | u16 size | body … | record | record | …
//!
//!   COMPRESSED    body = bytes of a zstd stream           (5.2)
//!   COMPRESSED2   body = u64 n, n bytes, up to 7 unused   (6.16)
//! ```
//!
//! All compressed bytes of a file are one zstd stream, flushed at the end of each record and never ended. Its content
//! is again records, which may cross the boundaries of COMPRESSED records. It is unpacked in pieces of a fixed size, so
//! memory does not grow with the sizes in the file.
//!
//! Two kinds of perf's own records, HEADER_TRACING_DATA and AUXTRACE, are followed by bytes that are not included in
//! their size; the body has the number of those bytes. Here they are the end of the body.

use std::fmt;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::layout::{
    HIGHEST_RECORD, PERF_RECORD_AUXTRACE, PERF_RECORD_COMPRESSED, PERF_RECORD_COMPRESSED2,
    PERF_RECORD_HEADER_TRACING_DATA,
};
use super::record::{Attrs, Record, Stamp};
use crate::cut::ByteOrder;
use crate::error::ParseError;
use crate::input::Input;

/// Size of the buffer for unpacked bytes; a record has at most 65 535.
const PIECE: usize = 1 << 18;
/// `perf record -z` uses windows of 512 KiB (level 1) to 8 MiB (level 19). Larger ones are refused, because the file
/// would determine the memory.
const MOST_WINDOW_LOG: u32 = 24;
/// After damage, reading resumes where this many plausible records follow each other.
const CHAIN: usize = 8;
/// Bytes of a [`RecordHeader`].
const HEADER_SIZE: usize = 8;
/// The size of the largest compressed record that perf writes.
const MOST_PACKED: usize = u16::MAX as usize;

/// The position of the records in a file.
#[derive(Clone, Debug)]
pub(super) struct RecordRange {
    pub(super) input: Input,
    pub(super) order: ByteOrder,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl RecordRange {
    /// A cursor over all records.
    pub(super) fn cursor(&self) -> RecordCursor {
        self.cursor_over(self.from, self.to)
    }

    /// A cursor over a range that begins and ends between two records.
    pub(super) fn cursor_over(&self, from: u64, to: u64) -> RecordCursor {
        let len = self.input.len();
        let end = to.min(len) as usize;
        let at = usize::try_from(from).unwrap_or(usize::MAX).min(end);
        RecordCursor {
            input: self.input.clone(),
            order: self.order,
            at,
            end,
            unpacker: None,
            found: None,
            damage: None,
        }
    }

    /// The next position after damage where several plausible records follow each other.
    pub(super) fn resume(&self, damaged_at: u64) -> Option<u64> {
        let bytes = self.input.bytes();
        let end = self.to.min(bytes.len() as u64);
        let mut at = damaged_at.checked_add(8)?;
        while at < end {
            if self.is_chain(bytes, at as usize, end as usize) {
                return Some(at);
            }
            at += 8;
        }
        None
    }

    fn is_chain(&self, bytes: &[u8], mut at: usize, end: usize) -> bool {
        for _ in 0..CHAIN {
            let head = RecordHeader::parse(&bytes[at..end], self.order);
            match head {
                _ if at == end => return true,
                Some(head) if head.is_plausible() && head.ty != 0 && at + head.size <= end => {
                    at += head.size;
                }
                _ => return false,
            }
        }
        true
    }
}

/// The record at the start of `bytes`, and its size; `None` if it is not complete.
#[inline]
pub(super) fn first_record(bytes: &[u8], order: ByteOrder) -> Option<(Record<'_>, usize)> {
    let RecordHeader { ty, misc, size } = RecordHeader::parse(bytes, order)?;
    Some((Record { ty, misc, body: bytes.get(HEADER_SIZE..size)?, order }, size))
}

/// The first eight bytes of a record.
#[derive(Clone, Copy, Debug)]
struct RecordHeader {
    ty: u32,
    misc: u16,
    size: usize,
}

impl RecordHeader {
    #[inline]
    fn parse(bytes: &[u8], order: ByteOrder) -> Option<RecordHeader> {
        let [a, b, c, d, e, f, g, h] = *bytes.first_chunk()?;
        let size = usize::from(order.u16([g, h]));
        Some(RecordHeader { ty: order.u32([a, b, c, d]), misc: order.u16([e, f]), size })
    }

    /// Whether it can be the header of a record.
    #[inline]
    fn is_plausible(&self) -> bool {
        self.size >= 8 && self.ty <= HIGHEST_RECORD
    }
}

/// Iterates over records.
pub(super) struct RecordCursor {
    input: Input,
    order: ByteOrder,
    at: usize,
    end: usize,
    unpacker: Option<Box<Unpacker>>,
    found: Option<RecordPlace>,
    /// The error that ended it, if it did not reach the end.
    damage: Option<ParseError>,
}

/// The position of a record's bytes.
#[derive(Clone, Copy)]
enum RecordPlace {
    InFile { at: usize, head: RecordHeader, len: usize },
    Unpacked { head: RecordHeader, from: usize },
}

impl RecordCursor {
    /// Moves to the next record; of a compressed one, to the records in it. `false` at the end, and at damage.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        if let Some(unpacker) = &mut self.unpacker
            && let Some((head, from)) = unpacker.take_whole(self.order)
        {
            self.found = Some(RecordPlace::Unpacked { head, from });
            return true;
        }
        match self.find() {
            Ok(found) => self.found = found,
            Err(parse_error) => self.end_at(parse_error),
        }
        if self.found.is_none() {
            self.unpacker = None;
        }
        self.found.is_some()
    }

    /// Moves to the next record that becomes an event or a loss, and returns its stamp. `None` at the end, and at
    /// damage.
    #[inline]
    pub(super) fn advance_to_stamped(&mut self, attrs: &Attrs) -> Option<Stamp> {
        while self.advance() {
            let stamp = self.record().and_then(|record| attrs.stamp_of_read(&record));
            if stamp.is_some() {
                return stamp;
            }
        }
        None
    }

    #[cold]
    fn end_at(&mut self, parse_error: ParseError) {
        self.found = None;
        self.at = self.end;
        self.unpacker = None;
        self.damage = Some(parse_error);
    }

    /// The error that ended it, if it did not reach the end.
    pub(super) fn damage(&self) -> Option<&ParseError> {
        self.damage.as_ref()
    }

    /// The current record.
    #[inline]
    pub(super) fn record(&self) -> Option<Record<'_>> {
        let (head, bytes) = self.bytes()?;
        Some(Record { ty: head.ty, misc: head.misc, body: bytes.get(HEADER_SIZE..)?, order: self.order })
    }

    /// The current record, and all its bytes.
    #[inline]
    pub(super) fn record_in_bytes(&self) -> Option<(Record<'_>, &[u8])> {
        Some((self.record()?, self.bytes()?.1))
    }

    #[inline]
    fn bytes(&self) -> Option<(RecordHeader, &[u8])> {
        match self.found? {
            RecordPlace::InFile { at, head, len } => Some((head, self.input.bytes().get(at..at + len)?)),
            RecordPlace::Unpacked { head, from } => {
                Some((head, self.unpacker.as_ref()?.buffer.get(from..from + head.size)?))
            }
        }
    }

    /// The position of the current record in the file; `None` if it was compressed.
    #[inline]
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        match self.found? {
            RecordPlace::InFile { at, len, .. } => Some((at as u64, (at + len) as u64)),
            RecordPlace::Unpacked { .. } => None,
        }
    }

    #[inline]
    fn find(&mut self) -> Result<Option<RecordPlace>, ParseError> {
        loop {
            if let Some(unpacker) = &mut self.unpacker
                && let Some((head, from)) = unpacker.next(self.input.bytes(), self.order)?
            {
                return Ok(Some(RecordPlace::Unpacked { head, from }));
            }
            let at = self.at;
            if at >= self.end {
                let Some(unpacker) = self.unpacker.as_ref().filter(|unpacker| unpacker.left() > 0) else {
                    return Ok(None);
                };
                // `perf record` flushes its compressor once for each piece of data. Data that does not fit in a record
                // is written with the next piece. At the end of a recording there is no next piece
                // (`zstd_compress_stream_to_records` in perf 6.1).
                let expected = match unpacker.to - unpacker.packed_at {
                    MOST_PACKED => "the rest of a record (perf leaves it out after a full compressed record)",
                    _ => "the rest of a record",
                };
                return Err(self.parse_error(expected, format!("{} bytes of it", unpacker.left())));
            }
            let bytes = &self.input.bytes()[at..self.end];
            let Some(head) = RecordHeader::parse(bytes, self.order) else {
                return Err(self.parse_error("a record", format!("{} bytes", bytes.len())));
            };
            if !head.is_plausible() {
                return Err(self.parse_error("a record", format!("type {}, size {}", head.ty, head.size)));
            }
            let len = head.size.saturating_add(self.bytes_after(&head, bytes));
            if len > bytes.len() {
                return Err(self.parse_error(&format!("{len} bytes"), format!("{} bytes", bytes.len())));
            }
            self.at += len;
            match head.ty {
                PERF_RECORD_COMPRESSED => self.unpack(at, at + 8, at + len)?,
                PERF_RECORD_COMPRESSED2 => {
                    let size = self.order.u64_at(bytes, 8).and_then(|size| usize::try_from(size).ok());
                    let Some(size) = size.filter(|size| *size <= len.saturating_sub(16)) else {
                        self.at = at;
                        return Err(self.parse_error("a size that fits the record", format!("{size:?}")));
                    };
                    self.unpack(at, at + 16, at + 16 + size)?;
                }
                _ => return Ok(Some(RecordPlace::InFile { at, head, len })),
            }
        }
    }

    /// The number of bytes after a record that are not included in its size.
    fn bytes_after(&self, head: &RecordHeader, bytes: &[u8]) -> usize {
        let size = match head.ty {
            PERF_RECORD_HEADER_TRACING_DATA => self.order.u32_at(bytes, 8).map(u64::from),
            PERF_RECORD_AUXTRACE => self.order.u64_at(bytes, 8),
            _ => None,
        };
        size.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX))
    }

    fn unpack(&mut self, packed_at: usize, from: usize, to: usize) -> Result<(), ParseError> {
        if self.unpacker.is_none() {
            let made =
                Unpacker::new().map_err(|error| self.parse_error("a zstd decoder", error.to_string()))?;
            self.unpacker = Some(Box::new(made));
        }
        if let Some(unpacker) = &mut self.unpacker {
            (unpacker.packed_at, unpacker.from, unpacker.to) = (packed_at, from, to);
        }
        Ok(())
    }

    fn parse_error(&self, expected: &str, found: String) -> ParseError {
        ParseError { at: self.at as u64, part: "record", expected: expected.to_owned(), found }
    }
}

/// Unpacks one zstd stream piece by piece, and cuts records from its output.
struct Unpacker {
    decoder: Decoder<'static>,
    /// The compressed record that is being unpacked, and its remaining bytes in the file.
    packed_at: usize,
    from: usize,
    to: usize,
    /// `done..filled` is unpacked and not yet taken.
    buffer: Vec<u8>,
    done: usize,
    filled: usize,
    /// Whether the decoder may have more output.
    more: bool,
}

impl fmt::Debug for RecordCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordCursor").field("at", &self.at).field("end", &self.end).finish_non_exhaustive()
    }
}

impl Unpacker {
    fn new() -> std::io::Result<Unpacker> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MOST_WINDOW_LOG))?;
        let buffer = vec![0; PIECE];
        Ok(Unpacker { decoder, packed_at: 0, from: 0, to: 0, buffer, done: 0, filled: 0, more: false })
    }

    /// Bytes of an incomplete record.
    fn left(&self) -> usize {
        self.filled - self.done
    }

    /// The next unpacked record, and its position in the buffer, if it is complete.
    #[inline]
    fn take_whole(&mut self, order: ByteOrder) -> Option<(RecordHeader, usize)> {
        let bytes = self.buffer.get(self.done..self.filled)?;
        let head = RecordHeader::parse(bytes, order)?;
        if !head.is_plausible() || head.size > bytes.len() {
            return None;
        }
        let from = self.done;
        self.done += head.size;
        Some((head, from))
    }

    /// Like [`take_whole`](Self::take_whole), but unpacks what is needed; `None` if the next compressed record is needed.
    fn next(&mut self, file: &[u8], order: ByteOrder) -> Result<Option<(RecordHeader, usize)>, ParseError> {
        loop {
            if let Some(whole) = self.take_whole(order) {
                return Ok(Some(whole));
            }
            let head = RecordHeader::parse(&self.buffer[self.done..self.filled], order);
            if let Some(head) = head.filter(|head| !head.is_plausible()) {
                let found = format!("type {}, size {}", head.ty, head.size);
                return Err(self.parse_error("a record", found));
            }
            if self.from == self.to && !self.more {
                return Ok(None);
            }
            self.fill(file)?;
        }
    }

    fn fill(&mut self, file: &[u8]) -> Result<(), ParseError> {
        self.buffer.copy_within(self.done..self.filled, 0);
        (self.done, self.filled) = (0, self.filled - self.done);
        let mut input = InBuffer::around(&file[self.from..self.to]);
        let mut output = OutBuffer::around(&mut self.buffer[self.filled..]);
        let result = self.decoder.run(&mut input, &mut output);
        let (taken, given) = (input.pos(), output.pos());
        self.from += taken;
        self.filled += given;
        self.more = self.filled == self.buffer.len();
        match result {
            Err(error) => Err(self.parse_error("a zstd stream", error.to_string())),
            // No input was consumed and no output produced: the loop would never end.
            Ok(_) if taken == 0 && given == 0 && self.from < self.to => {
                Err(self.parse_error("a zstd stream", "one that makes no progress".to_owned()))
            }
            Ok(_) => Ok(()),
        }
    }

    fn parse_error(&self, expected: &str, found: String) -> ParseError {
        ParseError {
            at: self.packed_at as u64,
            part: "compressed record",
            expected: expected.to_owned(),
            found,
        }
    }
}
