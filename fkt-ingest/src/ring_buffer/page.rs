//! One page ("sub-buffer") of the ring buffer: `struct buffer_data_page`, kernel/trace/ring_buffer.c, v6.12.
//!
//! ```text
//!   0        8        16                                      16+length            page size
//!   | time   | commit | record | record | …          | record | lost u64 | garbage |
//! ```
//!
//! `time` is the clock's value that the deltas of the records start from. `commit` is a `local_t`: 8 bytes of a 64-bit
//! kernel, 4 of a 32-bit one, where the records begin at 12. It is sign-extended from 32 bits:
//!
//! ```text
//!   bits 0..20   length of the records, in bytes
//!   bit 30       MISSED_STORED: `lost`, after the records, is the number of events lost (an `unsigned long`)
//!   bit 31       MISSED_EVENTS: events were lost before this page
//! ```
//!
//! Drawn as in `events/header_page` on x86-64. A trace contains that text, and the layout is read from it.

use crate::cut::ByteOrder;
use crate::error::ParseError;
use crate::format;

const MISSED_STORED: u64 = 1 << 30;
const MISSED_EVENTS: u64 = 1 << 31;
const LENGTH: u64 = (1 << 20) - 1;

/// The positions of the parts of a page, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    pub(crate) order: ByteOrder,
    commit: usize,
    /// Bytes of `commit`, which is the size of the kernel's `long`: 4 or 8.
    pub(crate) long_size: u8,
    data: usize,
    /// Size of a whole page.
    pub(crate) page_size: u64,
}

impl Default for PageLayout {
    fn default() -> PageLayout {
        PageLayout::of_kernel(ByteOrder::Little, 8)
    }
}

impl PageLayout {
    /// The layout of every kernel with a `long` of `long_size` bytes, in pages of 4 KiB.
    pub(crate) fn of_kernel(order: ByteOrder, long_size: u8) -> PageLayout {
        PageLayout { order, commit: 8, long_size, data: 8 + usize::from(long_size), page_size: 4096 }
    }

    /// The same layout with this page size.
    pub(crate) fn with_page_size(self, page_size: u64) -> PageLayout {
        PageLayout { page_size, ..self }
    }

    /// From the text of `header_page`; `Err` is what is invalid in it.
    pub(crate) fn parse(text: &str, order: ByteOrder) -> Result<PageLayout, String> {
        let fields = format::fields(text);
        let find = |name: &str| fields.iter().find(|f| f.name == name).ok_or(format!("no field {name}"));
        let (timestamp, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        if (timestamp.offset, timestamp.size) != (0, 8) {
            return Err(format!("timestamp of {} bytes at {}", timestamp.size, timestamp.offset));
        }
        let (4 | 8) = commit.size else {
            return Err(format!("commit of {} bytes", commit.size));
        };
        if commit.offset > 64 || data.offset < commit.offset + commit.size || data.offset > 128 {
            return Err(format!("commit at {}, data at {}", commit.offset, data.offset));
        }
        let page_size = u64::from(data.offset) + u64::from(data.size);
        let (commit_at, long_size) = (commit.offset as usize, commit.size as u8);
        Ok(PageLayout { order, commit: commit_at, long_size, data: data.offset as usize, page_size })
    }
}

impl PageLayout {
    /// The time of a page that begins with these bytes.
    pub(crate) fn time(&self, page: &[u8]) -> Option<u64> {
        page.first_chunk().map(|bytes| self.order.u64(*bytes))
    }

    fn long_at(&self, page: &[u8], at: usize) -> Option<u64> {
        let bytes = page.get(at..)?;
        match self.long_size {
            4 => bytes.first_chunk().map(|bytes| u64::from(self.order.u32(*bytes))),
            _ => bytes.first_chunk().map(|bytes| self.order.u64(*bytes)),
        }
    }
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The time that the records' deltas start from.
    pub(crate) time: u64,
    /// The records: bytes `records.0..records.1` of the page.
    pub(crate) records: (usize, usize),
    /// Whether events were lost before this page, and their number if it was stored.
    pub(crate) lost_before: Option<Option<u64>>,
    /// Whether the file ends within the records.
    pub(crate) cut_off: bool,
}

impl Page {
    /// Reads the header of a page that begins at byte `at` of the file. `bytes` is shorter than a page only at the end
    /// of the file.
    pub(crate) fn parse(bytes: &[u8], layout: &PageLayout, at: u64) -> Result<Page, ParseError> {
        let parse_error =
            |expected: String, found: String| ParseError { at, part: "page header", expected, found };
        let (Some(time), Some(commit), true) =
            (layout.time(bytes), layout.long_at(bytes, layout.commit), bytes.len() >= layout.data)
        else {
            return Err(parse_error(format!("{} bytes", layout.data), format!("{} bytes", bytes.len())));
        };
        let room = layout.page_size.saturating_sub(layout.data as u64);
        let length = commit & LENGTH;
        if length > room {
            return Err(parse_error(format!("at most {room} bytes of records"), format!("{length} bytes")));
        }
        let end = layout.data + length as usize;
        let lost_before = (commit & MISSED_EVENTS != 0)
            .then(|| if commit & MISSED_STORED != 0 { layout.long_at(bytes, end) } else { None });
        let cut_off = bytes.len() < end;
        Ok(Page { time, records: (layout.data, end.min(bytes.len())), lost_before, cut_off })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time: u64, commit: u64, after: &[u8]) -> Vec<u8> {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend(commit.to_le_bytes());
        bytes.extend(after);
        bytes.resize(4096, 0xaa);
        bytes
    }

    #[test]
    fn the_length_is_masked_out_of_a_sign_extended_commit() {
        let read = |commit| Page::parse(&page(5, commit, &[]), &PageLayout::default(), 0).unwrap();
        assert_eq!(read(0x164).records, (16, 16 + 0x164));
        assert_eq!(read(0x164).lost_before, None);
        assert_eq!(read(0xffff_ffff_8000_0008).lost_before, Some(None));
        assert_eq!(read(0xffff_ffff_8000_0008).records, (16, 24));
    }

    #[test]
    fn the_number_of_lost_events_is_after_the_records() {
        let after = [0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0x98, 0, 0, 0, 0, 0, 0];
        let read = Page::parse(&page(5, 0xffff_ffff_c000_0008, &after), &PageLayout::default(), 0).unwrap();
        assert_eq!(read.lost_before, Some(Some(38977)));
    }

    // | time 5 | commit 0xc0000008 | 8 bytes | lost 7 | in a big-endian 32-bit kernel's order
    #[test]
    fn a_page_of_a_32_bit_kernel_has_a_shorter_head_and_a_shorter_count() {
        let text = "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            field: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
            field: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            field: char data;\toffset:12;\tsize:16372;\tsigned:1;\n";
        let layout = PageLayout::parse(text, ByteOrder::Big).unwrap();
        assert_eq!(layout, PageLayout::of_kernel(ByteOrder::Big, 4).with_page_size(16384));
        let mut bytes = 5u64.to_be_bytes().to_vec();
        bytes.extend(0xc000_0008u32.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend(7u32.to_be_bytes());
        let read = Page::parse(&bytes, &layout, 0).unwrap();
        assert_eq!((read.time, read.records, read.lost_before), (5, (12, 20), Some(Some(7))));
    }

    #[test]
    fn more_records_than_a_page_holds_is_damage() {
        let damage = Page::parse(&page(5, 4081, &[]), &PageLayout::default(), 8192).unwrap_err();
        let message = "at byte 8192 (page header): expected at most 4080 bytes of records, found 4081 bytes";
        assert_eq!(damage.to_string(), message);
    }
}
