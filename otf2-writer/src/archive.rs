//! An archive: definitions, and a stream of events for each location.

use std::{
    collections::HashMap,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use crate::{
    AttributeId, AttributeValue, ClockProperties, Definitions, Directory, Event, LocationGroupId, LocationId,
    LocationType, Storage, StringId, anchor::Anchor, chunks::Chunks, storage::LOCATIONS,
};

/// The sizes of chunks that libotf2 reads, in bytes.
pub const CHUNK_SIZES: std::ops::RangeInclusive<usize> = 256 << 10..=16 << 20;

/// The events of a location are written to its file when they reach this size, in bytes.
const FLUSH_AT: usize = 64 << 10;

/// Options of an archive.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the chunks of events in bytes, within [`CHUNK_SIZES`]. A reader allocates one chunk for each location.
    pub event_chunk: usize,
    /// Size of the chunks of definitions in bytes, within [`CHUNK_SIZES`].
    pub definition_chunk: usize,
    /// Maximum memory for buffered events of all locations together, in bytes.
    pub memory: usize,
    /// Name of the machine on which the trace was recorded.
    pub machine: String,
    /// Name and version of the program that writes the archive.
    pub creator: String,
    /// Description of the trace.
    pub description: String,
}

impl Options {
    fn check(&self) -> io::Result<()> {
        for size in [self.event_chunk, self.definition_chunk] {
            if !CHUNK_SIZES.contains(&size) {
                let (min, max) = (CHUNK_SIZES.start(), CHUNK_SIZES.end());
                let why = format!("chunk size of {size} bytes: libotf2 reads chunks of {min} to {max} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        }
        Ok(())
    }
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

/// An archive that is being written. Readers cannot open it before [`finish`](Self::finish) has written its anchor
/// file.
#[derive(Debug)]
pub struct Archive {
    storage: Arc<dyn Storage>,
    options: Options,
    definitions: Definitions,
    locations: Vec<LocationEvents>,
    by_id: HashMap<LocationId, Location>,
    /// Memory of the buffers of all locations, in bytes.
    buffered: usize,
}

/// Handle of a location in its archive, for [`Archive::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location(u32);

#[derive(Debug)]
struct LocationEvents {
    id: LocationId,
    name: StringId,
    ty: LocationType,
    group: LocationGroupId,
    chunks: Chunks,
}

impl Archive {
    /// Creates an archive in a new or empty directory.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the directory is not empty. [`io::ErrorKind::InvalidInput`] if the options
    /// are out of range. Other errors if the directory or its files cannot be created.
    pub fn create(directory: &Path, clock: ClockProperties, options: Options) -> io::Result<Archive> {
        options.check()?;
        Archive::create_in(Directory::create(directory)?, clock, options)
    }

    /// Creates an archive; a [`Storage`] creates its files.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the options are out of range.
    pub fn create_in(
        storage: impl Storage + 'static,
        clock: ClockProperties,
        options: Options,
    ) -> io::Result<Archive> {
        options.check()?;
        let storage: Arc<dyn Storage> = Arc::new(storage);
        let definitions = Definitions::create(Arc::clone(&storage), options.definition_chunk, clock)?;
        let (locations, by_id) = (Vec::new(), HashMap::new());
        Ok(Archive { storage, options, definitions, locations, by_id, buffered: 0 })
    }

    /// The global definitions. More may be added between events.
    pub fn definitions(&mut self) -> &mut Definitions {
        &mut self.definitions
    }

    /// Adds a location: a thread, or a series of metrics. Its definition contains its number of events, so it is
    /// written by [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the archive has a location with this id.
    pub fn add_location(
        &mut self,
        id: LocationId,
        name: StringId,
        ty: LocationType,
        group: LocationGroupId,
    ) -> io::Result<Location> {
        let location = Location(self.locations.len() as u32);
        if self.by_id.insert(id, location).is_some() {
            let why = format!("location id {} is already in use", id.0);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let chunks = Chunks::new(self.options.event_chunk);
        self.locations.push(LocationEvents { id, name, ty, group, chunks });
        Ok(location)
    }

    /// Writes an event of a location, at a time in ticks of the archive's clock.
    ///
    /// Regions of one location must nest, and every region that is entered must be left. Readers require it; it is not
    /// checked here.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if `time` is before the previous event of this location, a metric has more than
    /// 255 values, the event does not fit into a chunk, or the archive is finished. Other errors if the file cannot be
    /// written.
    #[inline]
    pub fn write(
        &mut self,
        location: Location,
        time: u64,
        event: Event<'_>,
        attributes: &[(AttributeId, AttributeValue)],
    ) -> io::Result<()> {
        let Some(stream) = self.locations.get_mut(location.0 as usize) else {
            return Err(no_such_location());
        };
        if let Event::Metric(_, values) = event
            && values.len() > u8::MAX.into()
        {
            return Err(too_many_values(values.len()));
        }
        let before = stream.chunks.buffered();
        stream.chunks.event(time, |out| event.encode(attributes, out))?;
        if stream.chunks.unwritten() >= FLUSH_AT {
            stream.chunks.flush(&*self.storage, &file(stream.id, "evt"), false)?;
        }
        let after = stream.chunks.buffered();
        if after != before {
            self.buffered += after - before;
            if self.buffered > self.options.memory {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Completes all files; the anchor file is written last. No event can be written afterwards.
    ///
    /// # Errors
    /// If a file cannot be written; [`io::ErrorKind::InvalidInput`] if a definition does not fit into a chunk.
    pub fn finish(&mut self) -> io::Result<()> {
        let no_definitions = empty_file(self.options.definition_chunk);
        let mut events = 0;
        self.locations.sort_by_key(|stream| stream.id);
        for mut stream in std::mem::take(&mut self.locations) {
            stream.chunks.close();
            stream.chunks.flush(&*self.storage, &file(stream.id, "evt"), true)?;
            self.storage.create(&file(stream.id, "def"))?.write_all(&no_definitions)?;
            let count = stream.chunks.events();
            events += count;
            self.definitions.location(stream.id, stream.name, stream.ty, stream.group, count)?;
        }
        self.definitions.finish()?;
        let anchor = Anchor {
            event_chunk: self.options.event_chunk as u64,
            definition_chunk: self.options.definition_chunk as u64,
            locations: self.by_id.len() as u64,
            definitions: self.definitions.written(),
            machine: &self.options.machine,
            creator: &self.options.creator,
            description: &self.options.description,
            events,
        };
        anchor.write(self.storage.create("traces.otf2")?)
    }

    /// Writes the events of all locations, and frees their buffers.
    #[cold]
    fn flush(&mut self) -> io::Result<()> {
        for stream in &mut self.locations {
            if stream.chunks.buffered() > 0 {
                stream.chunks.flush(&*self.storage, &file(stream.id, "evt"), true)?;
            }
        }
        self.buffered = 0;
        Ok(())
    }
}

#[cold]
fn too_many_values(count: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("metric with {count} values: the format allows at most 255"),
    )
}

#[cold]
fn no_such_location() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no such location, or the archive is finished")
}

fn file(location: LocationId, extension: &str) -> String {
    format!("{LOCATIONS}/{}.{extension}", location.0)
}

/// A file of local definitions without any: locations use the global ids.
fn empty_file(chunk_size: usize) -> Vec<u8> {
    let mut chunks = Chunks::new(chunk_size);
    chunks.close();
    chunks.into_bytes()
}
