//! Listings: traces as text, one event a line, as `sigmund --format tsv` writes them and people write by hand.
//!
//! ```text
//! type    date_tick   pid    cpu  thr        code    name                  params
//! USER    5150163706  2732   2    8(work/6)  23014   USER_CONTEXT_SWITCH   1(daemon)
//! KERN    5170071750  1630   0    ?          -       IRQ                   24(eth0)
//! ```
//! Tab separated, columns in any order, named by the header line; `event` is another name for `name`, `param(s)` for
//! `params`. Where no exit of an interrupt is listed at all, an interrupt is a point: what follows is not in it.
//! `?` means none, `-` means "not known, work it out". A line `# tick_hz=2800000000` says what a tick is;
//! other lines that begin with `#`, and empty ones, mean nothing.

mod header;
mod params;
mod row;
mod stream;

use std::{fs, io::Read, path::Path};

use fkt_ingest::TraceStream;
use sigmund_model::{ClockDomain, EventType, Hertz, Level, Loss, LossKind};

use self::{
    header::Header,
    row::Row,
    stream::{ListingStream, Types},
};
use crate::{
    error::Error,
    source::{Source, stream_of},
};

/// Whether a file that begins like this may be a listing: text, with one of its column names in the first line.
pub(crate) fn is_listing(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    text.starts_with('#')
        || text.lines().next().is_some_and(|line| line.contains("date_tick") || line.contains("type\t"))
}

/// A listing that somebody only wants to look at.
#[derive(Debug)]
pub struct Listing {
    /// The events that its lines name.
    pub types: Vec<EventType>,
    /// Its events, in one stream; its clock is ticks of nobody knows what.
    pub streams: Vec<TraceStream>,
    /// Ticks per second, if it says so.
    pub tick_hz: Option<Hertz>,
    /// Lines that could not be read.
    pub losses: Vec<Loss>,
}

impl Listing {
    /// Reads a listing; `None` if the file begins as no listing does.
    ///
    /// # Errors
    /// When the file cannot be read, or has no header line.
    pub fn open(path: &Path) -> Result<Option<Listing>, Error> {
        let mut head = Vec::new();
        let file = fs::File::open(path).map_err(Error::io(path))?;
        file.take(64).read_to_end(&mut head).map_err(Error::io(path))?;
        if !is_listing(&head) {
            return Ok(None);
        }
        let Source { types, streams, tick_hz, losses, .. } = open(path)?;
        Ok(Some(Listing { types, streams, tick_hz, losses }))
    }
}

/// Reads a listing. Lines that cannot be read are losses; the others are kept.
pub(crate) fn open(path: &Path) -> Result<Source, Error> {
    let bytes = fs::read(path).map_err(Error::io(path))?;
    let text = String::from_utf8_lossy(&bytes);
    // Some editors begin a file with a byte-order mark.
    let text = text.trim_start_matches('\u{feff}');
    let mut source = Source::new(path);
    source.probes_place = true;
    let mut header = None;
    let mut rows: Vec<Row> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(comment) = line.strip_prefix('#') {
            source.tick_hz = source.tick_hz.or(tick_hz(comment));
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let Some(header) = &header else {
            header = Some(Header::parse(path, number, line)?);
            continue;
        };
        match Row::parse(header, line) {
            Ok(row) => rows.push(row),
            Err(bad) => source.losses.push(bad_line(path, number, &bad.expected, &bad.found)),
        }
    }
    if header.is_none() {
        return Err(Error::bad(
            path,
            "line 1",
            "a header line that names the columns",
            "the end of the file",
        ));
    }
    // By hand, people write one thread after the other; the order of lines with the same tick is kept.
    rows.sort_by_key(|row| row.tick);
    let types = Types::of(&rows);
    source.thread_names = types.thread_names(&rows);
    source.types = types.event_types();
    source.streams = vec![stream_of(ClockDomain::Ticks, Box::new(ListingStream::new(rows, types)))];
    Ok(source)
}

fn tick_hz(comment: &str) -> Option<Hertz> {
    let value = comment.trim().strip_prefix("tick_hz")?.trim_start().strip_prefix('=')?;
    Hertz::new(value.trim().parse().ok()?)
}

fn bad_line(path: &Path, number: u64, expected: &str, found: &str) -> Loss {
    let detail = format!("{}: line {number}: expected {expected}, found {found}", path.display());
    Loss { count: Some(1), ..Loss::new(LossKind::Damaged, Level::User, detail) }
}
