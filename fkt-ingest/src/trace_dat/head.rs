//! The first bytes of a trace.dat, up to where versions 6 and 7 part.

use crate::cut::Cut;
use crate::error::{Error, ErrorKind, Misfit};
use crate::input::Input;

/// What every trace.dat begins with.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The common head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) page_size: u32,
}

impl Head {
    /// The head, and what follows it.
    pub(super) fn parse(input: &Input) -> Result<(Head, Cut<'_>), Error> {
        let mut cut = Cut::new(input.bytes(), 0);
        let head = parse(&mut cut).map_err(|(kind, misfit)| Error::at(kind, input.path(), misfit))?;
        Ok((head, cut))
    }
}

fn parse(cut: &mut Cut<'_>) -> Result<Head, (ErrorKind, Misfit)> {
    let damaged = |misfit| (ErrorKind::Damaged, misfit);
    cut.tag(MAGIC, "magic").map_err(|m| (ErrorKind::NotThisFormat, m))?;
    let before_version = cut.clone();
    let version = cut.text("version").map_err(damaged)?;
    let before_endian = cut.clone();
    let endian = cut.u8("byte order").map_err(damaged)?;
    let before_long = cut.clone();
    let long_size = cut.u8("size of a long").map_err(damaged)?;
    let page_size = cut.u32("page size").map_err(damaged)?;

    let unsupported = |at: &Cut<'_>, part, expected: &str, found: String| {
        (ErrorKind::Unsupported, at.misfit(part, expected.to_owned(), found))
    };
    let version = match version.as_str() {
        "6" => 6,
        "7" => 7,
        _ => return Err(unsupported(&before_version, "version", "6 or 7", format!("{version:?}"))),
    };
    match endian {
        0 => {}
        1 => return Err(unsupported(&before_endian, "byte order", "little endian", "big endian".to_owned())),
        _ => {
            return Err(damaged(before_endian.misfit("byte order", "0 or 1".to_owned(), endian.to_string())));
        }
    }
    if long_size != 8 {
        return Err(unsupported(&before_long, "size of a long", "8 bytes", format!("{long_size} bytes")));
    }
    Ok(Head { version, page_size })
}
