//! The text of a metadata file: plain, or in packets.
//!
//! ```text
//!   0       4         20         24             28            32                                  37
//!   | magic | uuid    | checksum | content size | packet size | compression, encryption, checksum | text |
//!                                  in bits, with the header       scheme, major, minor; one byte each
//! ```
//!
//! The magic 0x75d11d57 shows the byte order.

use crate::error::ParseError;

use super::types::Order;

const MAGIC: [u8; 4] = 0x75d1_1d57_u32.to_be_bytes();
const HEADER_SIZE: usize = 37;

/// Whether a file with this beginning is a metadata of CTF 1.8.
pub(crate) fn is_metadata(head: &[u8]) -> bool {
    packet_order(head).is_some() || head.starts_with(b"/* CTF 1")
}

/// The text, and the position from which on it is not readable.
pub(super) fn text(file: &[u8]) -> (String, Option<ParseError>) {
    let Some(order) = packet_order(file) else {
        return (String::from_utf8_lossy(file).into_owned(), None);
    };
    let mut text = Vec::with_capacity(file.len());
    let mut rest = file;
    let mut parse_error = None;
    while !rest.is_empty() {
        let at = (file.len() - rest.len()) as u64;
        match packet(rest, order) {
            Ok((content, after)) => {
                text.extend_from_slice(content);
                rest = after;
            }
            Err(BadPacket { readable, expected, found }) => {
                text.extend_from_slice(readable);
                parse_error = Some(ParseError { at, part: "metadata packet", expected, found });
                break;
            }
        }
    }
    (String::from_utf8_lossy(&text).into_owned(), parse_error)
}

fn packet_order(head: &[u8]) -> Option<Order> {
    let magic = head.first_chunk::<4>()?;
    let swapped = [magic[3], magic[2], magic[1], magic[0]];
    match MAGIC {
        m if m == *magic => Some(Order::Big),
        m if m == swapped => Some(Order::Little),
        _ => None,
    }
}

struct BadPacket<'a> {
    readable: &'a [u8],
    expected: String,
    found: String,
}

/// The text of the first packet, and the remaining bytes.
fn packet(bytes: &[u8], order: Order) -> Result<(&[u8], &[u8]), BadPacket<'_>> {
    let broken =
        |expected: &str, found: String| BadPacket { readable: &[], expected: expected.to_owned(), found };
    if packet_order(bytes) != Some(order) {
        let found = bytes[..bytes.len().min(4)].escape_ascii().to_string();
        return Err(broken("the magic 0x75d11d57", found));
    }
    let Some((head, _)) = bytes.split_at_checked(HEADER_SIZE) else {
        return Err(broken("a header of 37 bytes", format!("{} bytes", bytes.len())));
    };
    let word = |at: usize| match order {
        Order::Little => u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]),
        Order::Big => u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]),
    };
    let (content, size) = ((word(24) / 8) as usize, (word(28) / 8) as usize);
    if head[32..35] != [0, 0, 0] {
        return Err(broken("no compression, encryption or checksum", format!("{:?}", &head[32..35])));
    }
    if content < HEADER_SIZE || size < content {
        return Err(broken("37 ≤ content size ≤ packet size", format!("{content} and {size} bytes")));
    }
    let Some(text) = bytes.get(HEADER_SIZE..content) else {
        let found = format!("{} bytes", bytes.len());
        return Err(BadPacket {
            readable: &bytes[HEADER_SIZE..],
            expected: format!("{content} bytes"),
            found,
        });
    };
    Ok((text, bytes.get(size..).unwrap_or_default()))
}
