//! Listings: traces as text, one event per line, as `sigmund --format tsv` and people write them.
//!
//! ```text
//! type    date_tick   pid    cpu  thr        code    name                  params
//! USER    5150163706  2732   2    8(work/6)  23014   USER_CONTEXT_SWITCH   1(daemon)
//! KERN    5170071750  1630   0    ?          -       IRQ                   24(eth0)
//! ```
//! Tab separated; columns in any order, named by the header line; `event` is another name for `name`, `param(s)` for
//! `params`. If no exit of a kind of interrupt is listed, such an interrupt is a point: the events after it are not in
//! it. `?` means none, `-` means unknown: it is inferred. A line `# tick_hz=2800000000` gives the ticks per second;
//! other lines that begin with `#`, and empty ones, are ignored.

mod header;
mod params;
mod row;
mod row_stream;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use sigmund_files::open_regular;
use sigmund_model::{ClockDomain, EventType, Hertz, Level, Loss, LossKind, Thread};

use self::header::Header;
use self::row::{BadLine, Row};
use self::row_stream::{ListingStream, ListingTypes};
use crate::error::Error;
use crate::trace_file::TraceStream;

/// The number of unreadable lines that have a row each; one more row counts the others.
const MAX_ROWS: u64 = 10_000;

/// An open listing: all its lines have been read.
///
/// It is not a [`TraceFile`](crate::TraceFile), and [`open`](crate::open) does not accept it, because its beginning
/// does not identify it.
#[derive(Debug)]
pub struct Listing {
    /// The events that its lines name.
    pub types: Vec<EventType>,
    /// Its events, in one stream; its clock has ticks of unknown length.
    pub streams: Vec<TraceStream>,
    /// Ticks per second, if the listing has them.
    pub tick_hz: Option<Hertz>,
    /// Names of user threads, from its column `thr` and from parameters that are threads.
    pub thread_names: Vec<(Thread, String)>,
    /// Lines that could not be read.
    pub losses: Vec<Loss>,
}

impl Listing {
    /// Whether a file with this beginning may be a listing: text, with one of the column names in the first line. 64
    /// bytes are enough.
    pub fn is_listing(head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(head);
        text.starts_with('#')
            || text.lines().next().is_some_and(|line| line.contains("date_tick") || line.contains("type\t"))
    }

    /// Reads a listing; `None` if its beginning is not that of a listing.
    ///
    /// # Errors
    /// When the file cannot be read, or has no header line.
    pub fn open(path: &Path) -> Result<Option<Listing>, Error> {
        Listing::of_file(path, open_regular(path).map_err(|error| Error::io(path, error))?)
    }

    /// As [`open`](Self::open), from an open file; `path` is used in messages only.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_file(path: &Path, mut file: File) -> Result<Option<Listing>, Error> {
        let io = |error| Error::io(path, error);
        file.rewind().map_err(io)?;
        let mut bytes = Vec::new();
        file.by_ref().take(64).read_to_end(&mut bytes).map_err(io)?;
        if !Listing::is_listing(&bytes) {
            return Ok(None);
        }
        file.read_to_end(&mut bytes).map_err(io)?;
        Listing::from_bytes(path, &bytes).map(Some)
    }

    /// Reads a listing in memory; `name` is used in messages. Lines that cannot be read are losses; the others are
    /// kept.
    ///
    /// # Errors
    /// When there is no header line.
    pub fn from_bytes(name: &Path, bytes: &[u8]) -> Result<Listing, Error> {
        let text = String::from_utf8_lossy(bytes);
        // Some editors begin a file with a byte-order mark.
        let text = text.trim_start_matches('\u{feff}');
        let (mut tick_hz, mut header, mut losses, mut damaged) = (None, None, Vec::new(), 0);
        let mut rows: Vec<Row> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(comment) = line.strip_prefix('#') {
                tick_hz = tick_hz.or(tick_hz_of_comment(comment));
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            let Some(header) = &header else {
                header = Some(
                    Header::parse(line)
                        .map_err(|bad| Error::in_line(name, number, bad.expected, bad.found))?,
                );
                continue;
            };
            match Row::parse(header, line) {
                Ok(row) => rows.push(row),
                Err(bad) => {
                    damaged += 1;
                    if damaged <= MAX_ROWS {
                        losses.push(bad_line(name, number, &bad));
                    }
                }
            }
        }
        losses.extend(others(name, damaged));
        if header.is_none() {
            let expected = "a header line that names the columns".to_owned();
            return Err(Error::in_line(name, 1, expected, "the end of the file".to_owned()));
        }
        // People may write one thread after the other. The sort keeps the order of lines with the same tick.
        rows.sort_by_key(|row| row.tick);
        let types = ListingTypes::of(&rows);
        let (thread_names, declared) = (types.thread_names(&rows), types.event_types());
        let events = Box::new(ListingStream::new(rows, types));
        let stream = TraceStream { clock: ClockDomain::Ticks, cpu: None, buffer: String::new(), events };
        Ok(Listing { types: declared, streams: vec![stream], tick_hz, thread_names, losses })
    }
}

fn tick_hz_of_comment(comment: &str) -> Option<Hertz> {
    let value = comment.trim().strip_prefix("tick_hz")?.trim_start().strip_prefix('=')?;
    Hertz::new(value.trim().parse().ok()?)
}

/// One row for the lines without a row of their own.
fn others(name: &Path, damaged: u64) -> Option<Loss> {
    let count = damaged.checked_sub(MAX_ROWS).filter(|count| *count > 0)?;
    let detail = format!("{}: {count} more damaged lines", name.display());
    Some(Loss { count: Some(count), ..Loss::new(LossKind::Damaged, Level::User, detail) })
}

fn bad_line(name: &Path, number: u64, bad: &BadLine) -> Loss {
    let BadLine { expected, found } = bad;
    let detail = format!("{}: line {number}: expected {expected}, found {found}", name.display());
    Loss { count: Some(1), ..Loss::new(LossKind::Damaged, Level::User, detail) }
}
