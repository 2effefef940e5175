//! Iterates over the records, in file order.
//!
//! ```text
//!   USER_RAW64    | u64 tick | u64 tid | u64 code | u64 args[n] |      code: low byte n + 1, number above
//!   USER_RAW32    | u64 tick | u32 tid | u32 code | u32 args[n] |      the same
//!   KERNEL_RAW32  | u32 tick | u16 pid | u16 cpu | u32 code | u32 args[n] |
//!   KERNEL_RAW64  | u32 tick | u64 code | u64 args[n] |
//! ```
//! A kernel's code below 0x300 is a system call, trap or interrupt without arguments; in other codes the low byte is
//! the size of the arguments in bytes. Kernel records are in pages, after a u64 with the position of the first page; a
//! page begins with a u32: the number of its used bytes, these four included. 0xfefefefe ends the block.
//!
//! The libfxt headers (0.3.13) declare the kernel's tick as a u64 and the CPU before the pid. Its reader uses the
//! layout drawn here, and so do we. It expects no page headers in KERNEL_RAW64, and misreads such a block after the
//! first record; no recorder that writes it is known. We read its records in pages like the others.
//!
//! 32-bit ticks are widened here: a tick that appears earlier by more than [`LATE`] is taken as one period later.
//! Whether more than one period has passed cannot be known.

use sigmund_model::Widen;

use super::blocks::{Layout, RecordBlock};
use crate::cut::ByteOrder;
use crate::error::ParseError;

/// Codes of the kernel below this are not shifted and have no arguments.
pub(super) const UNSHIFTED_LIMIT: u64 = 0x300;

/// The mark at the end of the pages of a kernel's block.
const END_OF_PAGES: u32 = 0xfefe_fefe;

/// A 32-bit tick that is earlier than the newest one by at most this is out of order, not a period later: 1.6 ms of a
/// 2.6 GHz TSC.
const LATE: u64 = 1 << 22;

/// A parsed record without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FxtRecord {
    pub(super) tick: u64,
    /// The kernel's pid, or the program's id of the thread; 0 if it has none.
    pub(super) id: u64,
    /// Only in 32-bit kernel records.
    pub(super) cpu: Option<u16>,
    /// The event's number, without the length.
    pub(super) code: u64,
    pub(super) kernel: bool,
    /// The position of its arguments.
    pub(super) args: Args,
}

/// The arguments of a record, in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Args {
    pub(super) at: usize,
    pub(super) count: u16,
    /// Size of each in bytes: 4 or 8.
    pub(super) size: u8,
}

impl Args {
    #[inline]
    pub(super) fn bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        file.get(self.at..self.at + usize::from(self.count) * usize::from(self.size)).unwrap_or_default()
    }

    /// The argument at `index`, zero-extended.
    #[inline]
    pub(super) fn get(&self, file: &[u8], order: ByteOrder, index: usize) -> Option<u64> {
        let bytes = self.bytes(file).get(index * usize::from(self.size)..)?;
        match self.size {
            4 => Some(u64::from(order.u32(*bytes.first_chunk()?))),
            _ => Some(order.u64(*bytes.first_chunk()?)),
        }
    }
}

/// One step through a file.
#[derive(Debug)]
pub(super) enum FileItem {
    Record(FxtRecord),
    /// Bytes that are not records were skipped, with the reason, and whether the file was truncated there.
    Skipped(ParseError, bool),
    End,
}

/// Iterates over all records of a file.
#[derive(Clone, Debug)]
pub(super) struct Records {
    order: ByteOrder,
    page_size: usize,
    /// Remaining blocks, the next one last.
    blocks: Vec<RecordBlock>,
    /// The open block; an empty one before the first.
    block: RecordBlock,
    at: usize,
    /// The end of the records: of the block, or of the page.
    end: usize,
    /// The next page, in a kernel's block.
    next_page: Option<usize>,
    /// Widens 32-bit ticks, relative to the first.
    ticks: Option<Widen>,
}

impl Records {
    pub(super) fn new(order: ByteOrder, page_size: usize, blocks: &[RecordBlock]) -> Records {
        let block = RecordBlock { layout: Layout::User64, from: 0, to: 0, cut_off: false };
        let blocks = blocks.iter().rev().copied().collect();
        Records { order, page_size, blocks, block, at: 0, end: 0, next_page: None, ticks: None }
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    #[inline]
    pub(super) fn next(&mut self, file: &[u8]) -> FileItem {
        loop {
            if self.at < self.end {
                match self.record(file) {
                    Ok(Some(record)) => return FileItem::Record(record),
                    Ok(None) => continue,
                    Err(parse_error) => return self.skipped(parse_error),
                }
            }
            match self.open_next(file) {
                Ok(true) => {}
                Ok(false) => return FileItem::End,
                Err(parse_error) => return self.skipped(parse_error),
            }
        }
    }

    /// Bytes were skipped. At the end of a truncated block, the truncation is the reason.
    #[cold]
    fn skipped(&mut self, parse_error: ParseError) -> FileItem {
        let cut_off = self.block.cut_off && self.at == self.block.to;
        self.block.cut_off &= !cut_off;
        FileItem::Skipped(parse_error, cut_off)
    }

    /// Opens the next page, or the next block; `false` after the last.
    #[cold]
    fn open_next(&mut self, file: &[u8]) -> Result<bool, ParseError> {
        if let Some(at) = self.next_page.take_if(|at| *at < self.block.to) {
            self.open_page(file, at)?;
            return Ok(true);
        }
        self.next_page = None;
        if self.block.cut_off {
            self.at = self.block.to;
            return Err(parse_error(
                self.at,
                "records",
                "more records".to_owned(),
                "the end of the file".to_owned(),
            ));
        }
        let Some(next) = self.blocks.pop() else { return Ok(false) };
        self.block = next;
        (self.at, self.end) = (next.from, next.to);
        if next.layout.is_kernel() {
            self.open_pages(file)?;
        }
        Ok(true)
    }

    /// Finds the first page of a kernel's block.
    fn open_pages(&mut self, file: &[u8]) -> Result<(), ParseError> {
        let RecordBlock { from, to, .. } = self.block;
        (self.at, self.end) = (to, to);
        let content = file.get(from..to).unwrap_or_default();
        let Some(offset) = content.first_chunk() else {
            let found = format!("{} bytes", content.len());
            return Err(parse_error(from, "offset of the first page", "8 bytes".to_owned(), found));
        };
        let offset = usize::try_from(self.order.u64(*offset)).unwrap_or(usize::MAX);
        self.next_page = (from + 8).checked_add(offset).filter(|at| *at <= to);
        if self.next_page.is_none() {
            let expected = format!("at most {}", to - from - 8);
            return Err(parse_error(from, "offset of the first page", expected, offset.to_string()));
        }
        Ok(())
    }

    /// Opens a page. If it cannot be read, only that page is skipped.
    fn open_page(&mut self, file: &[u8], at: usize) -> Result<(), ParseError> {
        let next = at.saturating_add(self.page_size);
        let end = next.min(self.block.to);
        (self.at, self.end, self.next_page) = (end, end, Some(next));
        let page = file.get(at..end).unwrap_or_default();
        let Some(used) = page.first_chunk() else {
            let found = format!("{} bytes", page.len());
            return Err(parse_error(at, "page header", "4 bytes".to_owned(), found));
        };
        let used = self.order.u32(*used);
        if used == END_OF_PAGES {
            (self.at, self.end, self.next_page) = (self.block.to, self.block.to, None);
            return Ok(());
        }
        if !(4..=self.page_size).contains(&(used as usize)) {
            let expected = format!("4 to {} used bytes", self.page_size);
            return Err(parse_error(at, "page header", expected, used.to_string()));
        }
        (self.at, self.end) = (at + 4, (at + used as usize).min(self.block.to));
        Ok(())
    }

    /// The next record; `None` if the following bytes are unused. If they are not a record, the rest of the page or of
    /// the block is skipped.
    #[inline]
    fn record(&mut self, file: &[u8]) -> Result<Option<FxtRecord>, ParseError> {
        let bytes = file.get(self.at..self.end).unwrap_or_default();
        let Some((mut record, head_len)) = self.fields(bytes) else {
            return Err(self.skip_rest(format!("{} bytes", bytes.len()), bytes.len()));
        };
        if record.tick == 0 && !record.kernel && bytes[..head_len].iter().all(|b| *b == 0) {
            return self.unused(bytes);
        }
        record.args.at = self.at + head_len;
        let len = head_len + usize::from(record.args.count) * usize::from(record.args.size);
        if len > bytes.len() {
            return Err(self.skip_rest(format!("a record of {len} bytes"), bytes.len()));
        }
        if record.kernel {
            let ticks = self.ticks.get_or_insert(Widen::new(32, record.tick));
            record.tick = ticks.widen_late(record.tick, LATE);
        }
        self.at += len;
        Ok(Some(record))
    }

    #[cold]
    fn skip_rest(&mut self, found: String, left: usize) -> ParseError {
        let at = self.at;
        self.at = self.end;
        parse_error(at, "record", format!("one of at most {left} bytes"), found)
    }

    #[inline]
    fn fields(&self, bytes: &[u8]) -> Option<(FxtRecord, usize)> {
        let order = self.order;
        let user = |tick, id, code: u64, size| {
            // libfxt treats a length of 0 as no arguments.
            let count = ((code & 0xff) as u16).saturating_sub(1);
            let args = Args { at: 0, count, size };
            FxtRecord { tick, id, cpu: None, code: code >> 8, kernel: false, args }
        };
        let kernel = |tick: [u8; 4], id: u16, cpu, code: u64, size: u8| {
            let (code, len) = if code < UNSHIFTED_LIMIT { (code, 0) } else { (code >> 8, code & 0xff) };
            let args = Args { at: 0, count: len as u16 / u16::from(size), size };
            FxtRecord { tick: u64::from(order.u32(tick)), id: u64::from(id), cpu, code, kernel: true, args }
        };
        Some(match self.block.layout {
            Layout::User64 => {
                let [tick, id, code] = split3(bytes.first_chunk::<24>()?);
                (user(order.u64(tick), order.u64(id), order.u64(code), 8), 24)
            }
            Layout::User32 => {
                let (tick, rest) = bytes.split_first_chunk()?;
                let (id, rest) = rest.split_first_chunk()?;
                let code = u64::from(order.u32(*rest.first_chunk()?));
                (user(order.u64(*tick), u64::from(order.u32(*id)), code, 4), 16)
            }
            Layout::Kernel32 => {
                let (tick, rest) = bytes.split_first_chunk()?;
                let (pid, rest) = rest.split_first_chunk()?;
                let (cpu, rest) = rest.split_first_chunk()?;
                let code = u64::from(order.u32(*rest.first_chunk()?));
                (kernel(*tick, order.u16(*pid), Some(order.u16(*cpu)), code, 4), 12)
            }
            Layout::Kernel64 => {
                let (tick, rest) = bytes.split_first_chunk()?;
                (kernel(*tick, 0, None, order.u64(*rest.first_chunk()?), 8), 12)
            }
        })
    }

    /// A slot that was never written is all zeros, and so are the bytes after the last record of a program that was
    /// killed.
    #[cold]
    fn unused(&mut self, bytes: &[u8]) -> Result<Option<FxtRecord>, ParseError> {
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        let at = self.at;
        if zeros == bytes.len() {
            self.at = self.end;
            return Ok(None);
        }
        let unit = if self.block.layout == Layout::User64 { 8 } else { 4 };
        let skipped = (zeros / unit).max(1) * unit;
        self.at = (at + skipped).min(self.end);
        let found = format!("{skipped} bytes that were never written");
        Err(parse_error(at, "record", "a tick and a code".to_owned(), found))
    }
}

fn split3(bytes: &[u8; 24]) -> [[u8; 8]; 3] {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        word
    };
    [word(0), word(8), word(16)]
}

fn parse_error(at: usize, part: &'static str, expected: String, found: String) -> ParseError {
    ParseError { at: at as u64, part, expected, found }
}
