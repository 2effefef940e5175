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
mod lines;
mod ordered;
mod params;
mod row;
mod row_stream;
mod stretches;
mod survey;
mod types;

use std::fs::File;
use std::path::Path;

use sigmund_files::open_regular;
use sigmund_model::{ClockDomain, EventType, Hertz, Loss, Thread};

use self::ordered::{Limits, Sorted};
use self::row_stream::ListingStream;
use self::survey::{Named, Survey};
use crate::error::Error;
use crate::input::Input;
use crate::trace_file::TraceStream;

/// An open listing: all its lines have been read once, for what they name. Its stream reads them again.
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
    /// If the file cannot be read, or has no header line.
    pub fn open(path: &Path) -> Result<Option<Listing>, Error> {
        Listing::of_file(path, open_regular(path).map_err(|error| Error::io(path, error))?)
    }

    /// Like [`open`](Self::open), from an open file; `path` is used in messages only.
    ///
    /// # Errors
    /// Like [`open`](Self::open).
    pub fn of_file(path: &Path, file: File) -> Result<Option<Listing>, Error> {
        let input = Input::of_file(path, file)?;
        let mut head = [0; 64];
        let read = input.read_at(0, &mut head).map_err(|error| Error::io(path, error))?;
        if !Listing::is_listing(&head[..read]) {
            return Ok(None);
        }
        Listing::of_input(path, &input, &Limits::USUAL).map(Some)
    }

    /// Reads a listing in memory; `name` is used in messages. Lines that cannot be read are losses; the others are
    /// kept.
    ///
    /// # Errors
    /// If there is no header line.
    pub fn from_bytes(name: &Path, bytes: &[u8]) -> Result<Listing, Error> {
        Listing::of_input(name, &Input::from_bytes(name, bytes.to_vec()), &Limits::USUAL)
    }

    fn of_input(name: &Path, input: &Input, limits: &Limits) -> Result<Listing, Error> {
        let io = |error| Error::io(name, error);
        let Survey { header, tick_hz, stretches, mut named, losses } = Survey::of(input, name, limits)?;
        let sorted = Sorted::of(input, header, &stretches, limits).map_err(io)?;
        // People may write one thread after the other.
        if !stretches.is_one() {
            named = Named::of(&mut sorted.lines().map_err(io)?).map_err(io)?;
        }
        let Named { types, threads, exits } = named;
        let declared = types.event_types();
        let events = Box::new(ListingStream::new(sorted.lines().map_err(io)?, types, exits));
        let stream = TraceStream { clock: ClockDomain::Ticks, cpu: None, buffer: String::new(), events };
        let thread_names = threads.into_iter().map(|(thread, name)| (thread, name.into())).collect();
        Ok(Listing { types: declared, streams: vec![stream], tick_hz, thread_names, losses })
    }
}

#[cfg(test)]
mod tests;
