//! The header of a file: the position of the records, and descriptions outside of them.
//!
//! ```text
//!   0            8       16          24         40      56     72                   104
//!   | "PERFILE2" | size | attr size | attributes | data | unused | 256 bits: features |      of a file
//!   | "PERFILE2" | 16   | records to the end                                                 of a pipe
//!
//!   attributes: each an attribute of `attr size` − 16 bytes | {u64 offset, u64 size} of its ids
//!   after the data: {u64 offset, u64 size} for each bit that is set
//! ```

use super::attr::Attr;
use super::described::Described;
use super::fields::Fields;
use super::layout::{HEADER_SIZE, MAGIC, MAGIC_BIG, PIPE_HEADER_SIZE};
use super::record_cursor::RecordRange;
use crate::cut::ByteOrder;
use crate::error::{Error, ErrorKind, ParseError};
use crate::input::Input;

/// Bytes after each attribute: the position of its ids.
const IDS_SECTION: u64 = 16;

/// A parsed header.
#[derive(Debug)]
pub(super) struct PerfHeader {
    pub(super) described: Described,
    pub(super) record_range: RecordRange,
    pub(super) is_pipe: bool,
    /// How the size of the records is wrong, if it is.
    pub(super) cut: Option<EarlyEnd>,
}

/// Why the records end early.
#[derive(Debug)]
pub(super) enum EarlyEnd {
    /// The recorder never wrote their size: it was killed.
    Unfinished,
    /// The file ends before the records do.
    Truncated,
}

/// The byte order of a file with this beginning; `None` if it is not a perf.data.
pub(super) fn byte_order(head: &[u8]) -> Option<ByteOrder> {
    if head.starts_with(MAGIC) {
        return Some(ByteOrder::Little);
    }
    head.starts_with(MAGIC_BIG).then_some(ByteOrder::Big)
}

/// Reads the header.
pub(super) fn read(input: &Input) -> Result<PerfHeader, Error> {
    let bytes = input.bytes();
    let fail = |kind, at: u64, part, expected: &str, found: String| {
        Error::at(kind, input.path(), ParseError { at, part, expected: expected.to_owned(), found })
    };
    let Some(order) = byte_order(bytes) else {
        let found = bytes[..bytes.len().min(8)].escape_ascii().to_string();
        return Err(fail(ErrorKind::NotThisFormat, 0, "magic", "PERFILE2", format!("{found:?}")));
    };
    let header = Fields::new(&bytes[8..], order);
    let words: Vec<u64> = {
        let mut fields = header;
        (0..12).map_while(|_| fields.u64()).collect()
    };
    let size = words.first().copied().unwrap_or(0);
    if size == PIPE_HEADER_SIZE {
        let record_range = RecordRange { input: input.clone(), order, from: size, to: input.len() };
        return Ok(PerfHeader { described: Described::default(), record_range, is_pipe: true, cut: None });
    }
    let (true, &[_, attr_size, attrs_at, attrs_size, data_at, data_size, _, _, ref bitmap @ ..]) =
        (size >= HEADER_SIZE, &words[..])
    else {
        let found = format!("{size}, in a file of {} bytes", bytes.len());
        return Err(fail(ErrorKind::Damaged, 8, "size of the header", "16 or at least 104", found));
    };
    let mut described = Described::default();
    let section = slice(bytes, attrs_at, attrs_size);
    let Some(section) = section.filter(|_| attr_size >= 64 + IDS_SECTION) else {
        let found = format!("{attrs_size} bytes at {attrs_at}, {attr_size} for each");
        return Err(fail(ErrorKind::Damaged, 16, "attributes", "attributes in the file", found));
    };
    let mut most_ids = bytes.len() / 8;
    for entry in section.chunks_exact(attr_size as usize) {
        let (attr, ids) = entry.split_at(entry.len() - IDS_SECTION as usize);
        let Some(mut attr) = Attr::parse(attr, order) else { continue };
        attr.ids = ids_of(bytes, Fields::new(ids, order), &mut most_ids);
        described.attrs.push(attr);
    }
    let end = data_at.saturating_add(data_size);
    let cut = match data_size {
        0 => Some(EarlyEnd::Unfinished),
        _ if end > input.len() => Some(EarlyEnd::Truncated),
        _ => None,
    };
    if cut.is_none() {
        features(bytes, end, bitmap, order, &mut described);
    }
    let to = if data_size == 0 { input.len() } else { end };
    let record_range = RecordRange { input: input.clone(), order, from: data_at, to };
    Ok(PerfHeader { described, record_range, is_pipe: false, cut })
}

/// `most` is the number of ids that the file can still hold: sections of several attributes may not share its bytes.
fn ids_of(file: &[u8], mut place: Fields<'_>, most: &mut usize) -> Vec<u64> {
    let section = place.u64().zip(place.u64()).and_then(|(at, size)| slice(file, at, size));
    let mut ids = Fields::new(section.unwrap_or_default(), place.order());
    let ids: Vec<u64> = std::iter::from_fn(|| ids.u64()).take(*most).collect();
    *most -= ids.len();
    ids
}

fn features(file: &[u8], at: u64, bitmap: &[u64], order: ByteOrder, described: &mut Described) {
    let table = usize::try_from(at).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    let mut table = Fields::new(table, order);
    for bit in 0..256u32 {
        let word = bitmap.get(bit as usize / 64).copied().unwrap_or(0);
        if word >> (bit % 64) & 1 == 0 {
            continue;
        }
        let Some((at, size)) = table.u64().zip(table.u64()) else {
            described
                .unreadable
                .push(("feature", format!("the end of the file before that of feature {bit}")));
            return;
        };
        match slice(file, at, size) {
            Some(bytes) => described.feature(bit, bytes, order),
            None => {
                described.unreadable.push(("feature", format!("feature {bit}: {size} bytes at byte {at}")));
            }
        }
    }
}

fn slice(file: &[u8], at: u64, size: u64) -> Option<&[u8]> {
    let (at, size) = (usize::try_from(at).ok()?, usize::try_from(size).ok()?);
    file.get(at..)?.get(..size)
}
