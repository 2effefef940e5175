//! A file of chunks that grows at its end, of which only the last bytes are in memory.

use std::io::{self, Seek, SeekFrom, Write};

use sigmund_files::Folder;

const END_OF_CHUNK: u8 = 0;
const END_OF_BUFFER: u8 = 1;
const END_OF_FILE: u8 = 2;
const CHUNK_HEADER: u8 = 3;
const TIMESTAMP: u8 = 5;
const LITTLE_ENDIAN: u8 = 0x42;

/// Where in a chunk's header the number of its last event is.
const LAST_EVENT: usize = 10;
/// Bytes that a timestamp takes.
const TIMESTAMP_LEN: usize = 9;
/// Bytes that an enter or leave takes at most.
const LONGEST_ENTER: usize = 6;
/// Bytes that have to be free behind the last record: the two that end a file.
const END_LEN: usize = 2;

/// A file of events, or of definitions.
#[derive(Debug)]
pub(super) struct Chunks {
    chunk_size: usize,
    /// Whether the file is there.
    is_made: bool,
    /// Length of the file.
    written: u64,
    /// Where in the file the chunk begins that is being filled.
    chunk: u64,
    /// What follows the bytes that are in the file.
    buffer: Vec<u8>,
    events: u64,
    time: Option<u64>,
    /// Numbers of last events that belong into headers that are in the file already: where, and what.
    patches: Vec<(u64, u64)>,
}

impl Chunks {
    pub(super) fn new(chunk_size: usize) -> Chunks {
        let (written, chunk, buffer) = (0, 0, Vec::new());
        Chunks {
            chunk_size,
            is_made: false,
            written,
            chunk,
            buffer,
            events: 0,
            time: None,
            patches: Vec::new(),
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Bytes that wait for being written.
    pub(super) fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes of memory.
    #[inline]
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// What would be written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.buffer
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When time goes back, or when no chunk could hold the event.
    #[inline]
    pub(super) fn event(&mut self, time: u64, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if self.is_new() {
            self.begin_chunk();
        }
        let before = self.buffer.len();
        if self.time != Some(time) {
            if self.time.is_some_and(|last| time < last) {
                return Err(goes_back(self.time, time));
            }
            self.time = Some(time);
            timestamp(&mut self.buffer, time);
        }
        let begin = self.buffer.len();
        encode(&mut self.buffer);
        // As the C library counts: with a timestamp, be there one or not, and an enter in its longest form.
        let len = TIMESTAMP_LEN + (self.buffer.len() - begin + END_LEN).max(LONGEST_ENTER + 1);
        if self.used(before) + len > self.chunk_size {
            self.move_to_next_chunk(before, begin, Some(time))?;
        }
        self.events += 1;
        Ok(())
    }

    /// Adds a definition.
    ///
    /// # Errors
    /// When no chunk could hold it.
    pub(super) fn definition(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if self.is_new() {
            self.begin_chunk();
        }
        let begin = self.buffer.len();
        encode(&mut self.buffer);
        if self.used(self.buffer.len()) + END_LEN > self.chunk_size {
            self.move_to_next_chunk(begin, begin, None)?;
        }
        Ok(())
    }

    /// Ends the file, after which nothing can be added.
    pub(super) fn close(&mut self) {
        if self.is_new() {
            self.begin_chunk();
        }
        self.set_last_event();
        self.buffer.extend_from_slice(&[END_OF_FILE, END_OF_BUFFER]);
    }

    /// Writes what waits. The memory stays for what follows, unless it is released.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn flush(&mut self, folder: &Folder, name: &str, release: bool) -> io::Result<()> {
        // Not open all the time: an archive may have more files than a process.
        let mut file = if self.is_made { folder.reopen_file(name)? } else { folder.create_file(name)? };
        self.is_made = true;
        for (at, last) in self.patches.drain(..) {
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&last.to_le_bytes())?;
        }
        file.seek(SeekFrom::Start(self.written))?;
        file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        if release {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    #[inline]
    fn is_new(&self) -> bool {
        self.buffer.is_empty() && self.written == 0
    }

    /// Bytes of the chunk up to this place in the buffer.
    #[inline]
    fn used(&self, place: usize) -> usize {
        (self.written + place as u64 - self.chunk) as usize
    }

    fn begin_chunk(&mut self) {
        self.buffer.extend_from_slice(&[CHUNK_HEADER, LITTLE_ENDIAN]);
        self.buffer.extend_from_slice(&(self.events + 1).to_le_bytes());
        self.buffer.extend_from_slice(&0u64.to_le_bytes());
    }

    /// What follows `end` does not fit any more; the record in it begins at `begin`.
    #[cold]
    fn move_to_next_chunk(&mut self, end: usize, begin: usize, time: Option<u64>) -> io::Result<()> {
        let record = self.buffer.split_off(begin);
        self.buffer.truncate(end);
        self.set_last_event();
        self.buffer.resize(end + self.chunk_size - self.used(end), END_OF_CHUNK);
        self.chunk += self.chunk_size as u64;
        self.begin_chunk();
        if let Some(time) = time {
            timestamp(&mut self.buffer, time);
        }
        self.buffer.extend_from_slice(&record);
        if self.used(self.buffer.len()) + END_LEN > self.chunk_size {
            let why = format!("a record of {} bytes in chunks of {}", record.len(), self.chunk_size);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(())
    }

    /// Definitions are not counted: their chunks say 1 and 0.
    fn set_last_event(&mut self) {
        if self.events == 0 {
            return;
        }
        match self.chunk.checked_sub(self.written) {
            Some(at) => {
                let at = at as usize + LAST_EVENT;
                self.buffer[at..at + 8].copy_from_slice(&self.events.to_le_bytes());
            }
            None => self.patches.push((self.chunk + LAST_EVENT as u64, self.events)),
        }
    }
}

#[inline]
fn timestamp(out: &mut Vec<u8>, time: u64) {
    let mut bytes = [TIMESTAMP; TIMESTAMP_LEN];
    bytes[1..].copy_from_slice(&time.to_le_bytes());
    out.extend_from_slice(&bytes);
}

#[cold]
fn goes_back(before: Option<u64>, time: u64) -> io::Error {
    let why = format!("time goes back at this location, from {} to {time}", before.unwrap_or_default());
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
