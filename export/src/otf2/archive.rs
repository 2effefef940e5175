//! The folder: one stream of events a location, and what becomes of them.

use std::{
    collections::HashMap,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use sigmund_files::Folder;

use super::{
    AttributeId, ClockProperties, Definitions, Event, LocationGroupId, LocationId, LocationType, StringId,
    Value, anchor::Anchor, chunks::Chunks,
};

/// The sizes of chunks that libotf2 reads.
pub const CHUNK_SIZES: std::ops::RangeInclusive<usize> = 256 << 10..=16 << 20;

/// A location's events go to its file when they are so many bytes.
const FLUSH_AT: usize = 64 << 10;

/// How an archive is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the chunks of events, one of [`CHUNK_SIZES`]. A reader needs so much memory for each location.
    pub event_chunk: usize,
    /// Size of the chunks of definitions, one of [`CHUNK_SIZES`].
    pub definition_chunk: usize,
    /// So many bytes of events of all locations are kept in memory.
    pub memory: usize,
    /// The machine where it was recorded.
    pub machine: String,
    /// Who writes it.
    pub creator: String,
    /// What it is.
    pub description: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            event_chunk: 1 << 20,
            definition_chunk: 4 << 20,
            memory: 64 << 20,
            machine: String::new(),
            creator: String::new(),
            description: String::new(),
        }
    }
}

/// An archive that is being written. It has no anchor file, and so is none, until it is [finished](Self::finish).
#[derive(Debug)]
pub struct Archive {
    folder: Arc<Folder>,
    /// `traces`, in it.
    of_locations: Folder,
    options: Options,
    definitions: Definitions,
    locations: Vec<Stream>,
    places: HashMap<LocationId, Location>,
    /// Memory of all streams, in bytes.
    held: usize,
}

/// A location of one archive, for [`Archive::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location(u32);

#[derive(Debug)]
struct Stream {
    id: LocationId,
    name: StringId,
    ty: LocationType,
    group: LocationGroupId,
    chunks: Chunks,
}

impl Archive {
    /// Begins an archive in a folder that is made, or is empty.
    ///
    /// # Errors
    /// When files are there already, when nothing can be written there, or when the options are out of range.
    pub fn create(folder: &Path, clock: ClockProperties, options: Options) -> io::Result<Archive> {
        Archive::create_in(Folder::create_or_take_empty(folder, None)?, clock, options)
    }

    /// Begins an archive in a folder that is open and empty.
    ///
    /// # Errors
    /// As those of [`create`](Self::create).
    pub fn create_in(folder: Folder, clock: ClockProperties, options: Options) -> io::Result<Archive> {
        for size in [options.event_chunk, options.definition_chunk] {
            if !CHUNK_SIZES.contains(&size) {
                let why = format!("chunks of {size} bytes, but libotf2 reads {CHUNK_SIZES:?}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        }
        let of_locations = folder.create_folder("traces")?;
        let folder = Arc::new(folder);
        let definitions = Definitions::create(Arc::clone(&folder), options.definition_chunk, clock)?;
        let (locations, places) = (Vec::new(), HashMap::new());
        Ok(Archive { folder, of_locations, options, definitions, locations, places, held: 0 })
    }

    /// What is defined, and what else is to be.
    pub fn definitions(&mut self) -> &mut Definitions {
        &mut self.definitions
    }

    /// A location with this number. Its number of events is counted here, so it is defined when the archive is finished.
    ///
    /// # Errors
    /// When there is one with this number.
    pub fn add_location(
        &mut self,
        id: LocationId,
        name: StringId,
        ty: LocationType,
        group: LocationGroupId,
    ) -> io::Result<Location> {
        let location = Location(self.locations.len() as u32);
        if self.places.insert(id, location).is_some() {
            let why = format!("two locations with the number {}", id.0);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.locations.push(Stream { id, name, ty, group, chunks: Chunks::new(self.options.event_chunk) });
        Ok(location)
    }

    /// Something happens there, at this time.
    ///
    /// # Errors
    /// When time goes back at this location, when it cannot be written, or when the archive is finished.
    #[inline]
    pub fn write(
        &mut self,
        location: Location,
        time: u64,
        event: Event<'_>,
        attributes: &[(AttributeId, Value)],
    ) -> io::Result<()> {
        let Some(stream) = self.locations.get_mut(location.0 as usize) else {
            return Err(no_such_location());
        };
        let before = stream.chunks.held();
        stream.chunks.event(time, |out| event.encode(attributes, out))?;
        if stream.chunks.waiting() >= FLUSH_AT {
            stream.chunks.flush(&self.of_locations, &file(stream.id, "evt"), false)?;
        }
        let after = stream.chunks.held();
        if after != before {
            self.held += after - before;
            if self.held > self.options.memory {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes all files to their ends, and at last the anchor file. Nothing can be written after that.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        let nothing = empty_file(self.options.definition_chunk);
        let mut events = 0;
        self.locations.sort_by_key(|stream| stream.id);
        for mut stream in std::mem::take(&mut self.locations) {
            stream.chunks.close();
            stream.chunks.flush(&self.of_locations, &file(stream.id, "evt"), true)?;
            self.of_locations.create_file(file(stream.id, "def"))?.write_all(&nothing)?;
            let count = stream.chunks.events();
            events += count;
            self.definitions.location(stream.id, stream.name, stream.ty, stream.group, count)?;
        }
        self.definitions.finish()?;
        let anchor = Anchor {
            event_chunk: self.options.event_chunk as u64,
            definition_chunk: self.options.definition_chunk as u64,
            locations: self.places.len() as u64,
            definitions: self.definitions.written(),
            machine: &self.options.machine,
            creator: &self.options.creator,
            description: &self.options.description,
            events,
        };
        anchor.write(self.folder.create_file("traces.otf2")?)
    }

    /// Writes the events of all locations, and gives their memory back.
    #[cold]
    fn flush(&mut self) -> io::Result<()> {
        for stream in &mut self.locations {
            if stream.chunks.held() > 0 {
                stream.chunks.flush(&self.of_locations, &file(stream.id, "evt"), true)?;
            }
        }
        self.held = 0;
        Ok(())
    }
}

#[cold]
fn no_such_location() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no such location, or the archive is finished")
}

fn file(location: LocationId, extension: &str) -> String {
    format!("{}.{extension}", location.0)
}

/// The local definitions of a location whose numbers are the global ones.
fn empty_file(chunk_size: usize) -> Vec<u8> {
    let mut chunks = Chunks::new(chunk_size);
    chunks.close();
    chunks.into_bytes()
}
