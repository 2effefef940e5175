//! The formats of viewers as one type, and messages about what an export left out.

use std::{
    io::{self, Write},
    sync::Arc,
};

use sigmund_files::{Destination, Replaceable};
use sigmund_model::{Nanos, Ticks};

use super::{background::Background, chrome::Chrome, ctf::Ctf, otf2::Otf2, paje::Paje, perfetto::Perfetto};
use crate::{
    coarse::Coarse,
    timeline::{Actors, Change, Sink},
};

/// A format that viewers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerFormat {
    /// Pajé: ViTE, pj_dump.
    Paje,
    /// OTF2, a folder: Vampir.
    Otf2,
    /// Perfetto's protobuf.
    Perfetto,
    /// Chrome's JSON.
    Chrome,
    /// CTF 1.8, a folder: babeltrace2, Trace Compass.
    Ctf,
}

/// An export in progress, exact or coarse.
pub struct ViewerSink<'w>(Detail<'w>);

enum Detail<'w> {
    Exact(Format<'w>),
    Coarse(Box<Coarse<Format<'w>>>),
}

enum Format<'w> {
    Ctf(Box<Ctf>),
    Other(Box<dyn Sink + 'w>),
}

impl ViewerFormat {
    /// Whether it contains only events, and no states.
    pub fn has_events_only(self) -> bool {
        self == ViewerFormat::Ctf
    }

    /// Whether it is a folder instead of a file.
    pub fn is_folder(self) -> bool {
        matches!(self, ViewerFormat::Otf2 | ViewerFormat::Ctf)
    }

    /// The destinations that `--force` may overwrite: a file, an empty folder, or a folder with the main file of one of
    /// the formats.
    pub const REPLACEABLE: Replaceable = Replaceable {
        expected: "a file, an OTF2 archive (with traces.otf2) or a CTF trace (with metadata)",
        files: true,
        folder: |folder| {
            let is_empty = folder.names().is_ok_and(|names| names.is_empty());
            is_empty || folder.has("traces.otf2") || folder.has("metadata")
        },
    };

    /// Creates an export at its destination. Intervals shorter than `coarse` are merged or left out.
    ///
    /// # Errors
    /// If it cannot be written, or if the format cannot contain so many actors.
    pub fn create(
        self,
        destination: &mut Destination,
        actors: &Arc<Actors>,
        coarse: Option<Nanos>,
    ) -> io::Result<ViewerSink<'static>> {
        let format = match self {
            ViewerFormat::Otf2 => {
                Otf2::check(actors)?;
                Format::Other(Box::new(Otf2::create_in(destination.folder()?, Arc::clone(actors))?))
            }
            ViewerFormat::Ctf => {
                Format::Ctf(Box::new(Ctf::create_in(destination.folder()?, Arc::clone(actors))?))
            }
            ViewerFormat::Paje | ViewerFormat::Perfetto | ViewerFormat::Chrome => {
                return self.write(Background::new(destination.file()?)?, actors, coarse);
            }
        };
        Ok(ViewerSink::new(format, actors, coarse))
    }

    /// Creates an export to a stream.
    ///
    /// # Errors
    /// If it cannot be written, or if the format is a folder.
    pub fn write<'w>(
        self,
        out: impl Write + 'w,
        actors: &Arc<Actors>,
        coarse: Option<Nanos>,
    ) -> io::Result<ViewerSink<'w>> {
        let for_sink = Arc::clone(actors);
        let sink: Box<dyn Sink + 'w> = match self {
            ViewerFormat::Paje => Box::new(Paje::new(out, for_sink)?),
            ViewerFormat::Perfetto => Box::new(Perfetto::new(out, for_sink)?),
            ViewerFormat::Chrome => Box::new(Chrome::new(out, for_sink)?),
            ViewerFormat::Otf2 | ViewerFormat::Ctf => {
                return Err(io::Error::new(
                    io::ErrorKind::IsADirectory,
                    "a format that is a folder cannot be written to a stream",
                ));
            }
        };
        Ok(ViewerSink::new(Format::Other(sink), actors, coarse))
    }
}

impl<'w> ViewerSink<'w> {
    fn new(format: Format<'w>, actors: &Actors, coarse: Option<Nanos>) -> ViewerSink<'w> {
        let ticks = |nanos: Nanos| actors.clock.rate.map_or(Ticks(nanos.0), |rate| rate.to_ticks(nanos));
        ViewerSink(match coarse {
            Some(least) => Detail::Coarse(Box::new(Coarse::new(format, actors, ticks(least)))),
            None => Detail::Exact(format),
        })
    }

    /// Messages about what was left out, one line each.
    pub fn left_out(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Detail::Coarse(coarse) = &self.0 {
            let left = coarse.left_out();
            if left.holds > 0 {
                lines.push(format!("coarse: left out all {} holds of locks", left.holds));
            }
            lines.push(format!(
                "coarse: merged {} short states; left out {} slices, {} events, {} wakeups, {} migrations and {} \
                 values of counters",
                left.short_states,
                left.slices + left.too_deep,
                left.events,
                left.wakeups,
                left.migrations,
                left.counts
            ));
        }
        let format = match &self.0 {
            Detail::Exact(format) => format,
            Detail::Coarse(coarse) => coarse.sink(),
        };
        if let Format::Ctf(ctf) = format {
            let left = ctf.summary();
            if left.unplaced > 0 {
                lines
                    .push(format!("{} kernel events of unknown CPU are in a separate stream", left.unplaced));
            }
            if left.names_left_out > 0 {
                lines.push(format!("left out {} names of numbers", left.names_left_out));
            }
            if left.as_text > 0 {
                lines.push(format!("wrote the fields of {} events as texts", left.as_text));
            }
        }
        lines
    }
}

impl Sink for ViewerSink<'_> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        match &mut self.0 {
            Detail::Exact(format) => format.change(tick, change),
            Detail::Coarse(coarse) => coarse.change(tick, change),
        }
    }

    fn needs_events_only(&self) -> bool {
        match &self.0 {
            Detail::Exact(format) => format.needs_events_only(),
            Detail::Coarse(coarse) => coarse.needs_events_only(),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Detail::Exact(format) => format.finish(),
            Detail::Coarse(coarse) => coarse.finish(),
        }
    }
}

impl Sink for Format<'_> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        match self {
            Format::Ctf(ctf) => ctf.change(tick, change),
            Format::Other(sink) => sink.change(tick, change),
        }
    }

    fn needs_events_only(&self) -> bool {
        match self {
            Format::Ctf(ctf) => ctf.needs_events_only(),
            Format::Other(sink) => sink.needs_events_only(),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Format::Ctf(ctf) => ctf.finish(),
            Format::Other(sink) => sink.finish(),
        }
    }
}
