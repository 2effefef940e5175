//! The first bytes of a trace.dat, which versions 6 and 7 share.

use crate::cut::{ByteOrder, Cut};
use crate::error::{Error, ErrorKind, ParseError};
use crate::input::Input;

/// The first bytes of every trace.dat.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) version: u32,
    pub(super) order: ByteOrder,
    /// Size of a `long` on the recorder, in bytes; that of its kernel is in `header_page`.
    pub(super) long_size: u8,
    pub(super) page_size: u32,
}

impl FileHeader {
    /// The header, and the bytes after it.
    pub(super) fn parse(input: &Input) -> Result<(FileHeader, Cut<'_>), Error> {
        let mut cut = Cut::new(input.bytes(), 0);
        let head =
            parse(&mut cut).map_err(|(kind, parse_error)| Error::at(kind, input.path(), parse_error))?;
        Ok((head, cut))
    }
}

fn parse(cut: &mut Cut<'_>) -> Result<FileHeader, (ErrorKind, ParseError)> {
    let damaged = |parse_error| (ErrorKind::Damaged, parse_error);
    cut.tag(MAGIC, "magic").map_err(|m| (ErrorKind::NotThisFormat, m))?;
    let before_version = cut.clone();
    let version = cut.text("version").map_err(damaged)?;
    let before_endian = cut.clone();
    let endian = cut.u8("byte order").map_err(damaged)?;
    let before_long = cut.clone();
    let unsupported = |at: &Cut<'_>, part, expected: &str, found: String| {
        (ErrorKind::Unsupported, at.parse_error(part, expected.to_owned(), found))
    };
    let version = match version.as_str() {
        "6" => 6,
        "7" => 7,
        _ => return Err(unsupported(&before_version, "version", "6 or 7", format!("{version:?}"))),
    };
    let order = match endian {
        0 => ByteOrder::Little,
        1 => ByteOrder::Big,
        _ => {
            return Err(damaged(before_endian.parse_error(
                "byte order",
                "0 or 1".to_owned(),
                endian.to_string(),
            )));
        }
    };
    *cut = cut.clone().with_order(order);
    let long_size = cut.u8("size of a long").map_err(damaged)?;
    if !matches!(long_size, 4 | 8) {
        return Err(unsupported(
            &before_long,
            "size of a long",
            "4 or 8 bytes",
            format!("{long_size} bytes"),
        ));
    }
    let page_size = cut.u32("page size").map_err(damaged)?;
    Ok(FileHeader { version, order, long_size, page_size })
}
