//! A file of chunks, written by appending; only the bytes that are not yet written are in memory.

use std::io::{self, Seek, SeekFrom, Write};

use crate::Storage;

const END_OF_CHUNK: u8 = 0;
const END_OF_BUFFER: u8 = 1;
const END_OF_FILE: u8 = 2;
const CHUNK_HEADER: u8 = 3;
const TIMESTAMP: u8 = 5;
const LITTLE_ENDIAN: u8 = 0x42;

/// Offset of the number of the last event in a chunk's header.
const LAST_EVENT: usize = 10;
/// Length of a timestamp record.
const TIMESTAMP_LEN: usize = 9;
/// Length of the longest enter or leave record.
const LONGEST_ENTER: usize = 6;
/// Bytes that must be free after the last record of a chunk: two bytes end a file.
const END_LEN: usize = 2;

/// A file of events, or of definitions.
#[derive(Debug)]
pub(crate) struct Chunks {
    chunk_size: usize,
    /// Whether the file has been created.
    exists: bool,
    /// Length of the file so far.
    written: u64,
    /// Offset in the file of the current chunk.
    chunk: u64,
    /// Bytes that follow those already in the file.
    buffer: Vec<u8>,
    events: u64,
    time: Option<u64>,
    /// Offsets and values of "number of the last event" in chunk headers that are already in the file.
    patches: Vec<(u64, u64)>,
}

impl Chunks {
    pub(crate) fn new(chunk_size: usize) -> Chunks {
        let (written, chunk, buffer) = (0, 0, Vec::new());
        Chunks {
            chunk_size,
            exists: false,
            written,
            chunk,
            buffer,
            events: 0,
            time: None,
            patches: Vec::new(),
        }
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Bytes that are not yet written.
    pub(crate) fn unwritten(&self) -> usize {
        self.buffer.len()
    }

    /// Size of the buffer, in bytes of memory.
    #[inline]
    pub(crate) fn buffered(&self) -> usize {
        self.buffer.capacity()
    }

    /// The bytes that are not yet written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.buffer
    }

    /// Adds an event.
    ///
    /// # Errors
    /// If `time` is before the previous event, or if the event does not fit into a chunk.
    #[inline]
    pub(crate) fn event(&mut self, time: u64, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if self.is_new() {
            self.begin_chunk();
        }
        let before = self.buffer.len();
        if self.time != Some(time) {
            if self.time.is_some_and(|last| time < last) {
                return Err(decreasing_time(self.time, time));
            }
            self.time = Some(time);
            timestamp(&mut self.buffer, time);
        }
        let begin = self.buffer.len();
        encode(&mut self.buffer);
        // libotf2 always reserves space for a timestamp and for the longest enter record.
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
    /// If it does not fit into a chunk.
    pub(crate) fn definition(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
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

    /// Ends the file; nothing can be added afterwards.
    pub(crate) fn close(&mut self) {
        if self.is_new() {
            self.begin_chunk();
        }
        self.set_last_event();
        self.buffer.extend_from_slice(&[END_OF_FILE, END_OF_BUFFER]);
    }

    /// Writes the buffer to the file. The buffer's memory is kept for later events, unless `release` is set.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn flush(&mut self, storage: &dyn Storage, name: &str, release: bool) -> io::Result<()> {
        // Opened for each write: an archive may have more locations than a process may have descriptors.
        let mut file = if self.exists { storage.reopen(name)? } else { storage.create(name)? };
        self.exists = true;
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

    /// Bytes of the chunk up to this index of the buffer.
    #[inline]
    fn used(&self, index: usize) -> usize {
        (self.written + index as u64 - self.chunk) as usize
    }

    fn begin_chunk(&mut self) {
        self.buffer.extend_from_slice(&[CHUNK_HEADER, LITTLE_ENDIAN]);
        self.buffer.extend_from_slice(&(self.events + 1).to_le_bytes());
        self.buffer.extend_from_slice(&0u64.to_le_bytes());
    }

    /// Ends the chunk at `end`, and moves the record that begins at `begin` to the next one.
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
            let why = format!(
                "a record of {} bytes does not fit into a chunk of {}",
                record.len(),
                self.chunk_size
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(())
    }

    /// Fills in the number of the last event. Definitions are not counted: their chunk headers contain 1 and 0.
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
fn decreasing_time(before: Option<u64>, time: u64) -> io::Error {
    let before = before.unwrap_or_default();
    let why = format!("event at {time}, before the previous event of this location at {before}");
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
