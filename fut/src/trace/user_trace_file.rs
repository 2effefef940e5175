//! The file of a user trace. Reads headers and packets at offsets, and searches for the next valid packet.
//!
//! Several parts of a trace are read as one file. Each begins with its own header, which is skipped in all parts but
//! the first.
//!
//! ```text
//!   part 5   | header | packet | packet |
//!   part 6                              | header | packet | packet |
//!   offset   0        16                         (not counted)     len
//! ```

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use sigmund_model::{Level, Loss, LossKind};

use super::{
    packet::{FILE_HEAD_LEN, FILE_MAGIC, PACKET_HEAD_LEN, PACKET_MAGIC, PacketHead, VERSION},
    reader::Packet,
    wire::{Cut, TraceError},
};

/// Maximum length of a packet. No writer creates longer ones: a greater length is damage, for which no memory is
/// allocated.
const MAX_PACKET_LEN: u64 = 16 << 20;

/// O_NONBLOCK of x86-64. Without it, opening a FIFO would wait for its writer.
const NONBLOCKING: i32 = 0o4000;

/// An open file.
#[derive(Debug)]
pub(super) struct UserTraceFile {
    pub(super) path: PathBuf,
    /// The parts in order; there is at least one.
    parts: Vec<Part>,
    pub(super) len: u64,
}

/// The file of one part.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: File,
    /// The offset, in the whole trace, of the first byte of this part that counts.
    start: u64,
    /// Number of bytes before that one in the file.
    skipped: u64,
}

impl UserTraceFile {
    pub(super) fn open(path: &Path) -> Result<UserTraceFile, TraceError> {
        let io_error = |error| TraceError::Io(path.to_path_buf(), error);
        let file = OpenOptions::new().read(true).custom_flags(NONBLOCKING).open(path).map_err(io_error)?;
        UserTraceFile::of_file(path, file)
    }

    pub(super) fn of_file(path: &Path, file: File) -> Result<UserTraceFile, TraceError> {
        UserTraceFile::of_parts(path, vec![(path.to_path_buf(), file)])
    }

    /// Reads several parts as one trace. `path` is the name of the whole trace.
    pub(super) fn of_parts(path: &Path, files: Vec<(PathBuf, File)>) -> Result<UserTraceFile, TraceError> {
        let (mut parts, mut len) = (Vec::new(), 0);
        for (path, file) in files {
            let io_error = |error| TraceError::Io(path.clone(), error);
            let about = file.metadata().map_err(io_error)?;
            if !about.is_file() {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file");
                return Err(io_error(error));
            }
            check_head(&path, &file, about.len())?;
            let skipped = if parts.is_empty() { 0 } else { FILE_HEAD_LEN as u64 };
            parts.push(Part { path, file, start: len, skipped });
            len += about.len() - skipped;
        }
        Ok(UserTraceFile { path: path.to_path_buf(), parts, len })
    }

    /// Whether there is more than one part.
    pub(super) fn has_parts(&self) -> bool {
        self.parts.len() > 1
    }

    /// The number of the part that contains the byte at `at`, from 0.
    pub(super) fn part_of(&self, at: u64) -> usize {
        self.parts.partition_point(|part| part.start <= at).saturating_sub(1)
    }

    /// The file that contains the byte at `at`, and the offset of the byte in this file.
    fn place(&self, at: u64) -> (&Path, u64) {
        let part = &self.parts[self.part_of(at)];
        (&part.path, at - part.start + part.skipped)
    }

    fn read(&self, mut at: u64, mut into: &mut [u8]) -> Result<(), TraceError> {
        let mut index = self.part_of(at);
        while !into.is_empty() {
            let part = &self.parts[index];
            let end = self.parts.get(index + 1).map_or(self.len, |next| next.start);
            let here = into.len().min((end - at) as usize);
            // If the range extends beyond the last byte of all parts, reading the last file returns the error.
            let here = if index + 1 == self.parts.len() { into.len() } else { here };
            let read = part.file.read_exact_at(&mut into[..here], at - part.start + part.skipped);
            read.map_err(|error| TraceError::Io(part.path.clone(), error))?;
            (at, into, index) = (at + here as u64, &mut into[here..], index + 1);
        }
        Ok(())
    }

    /// The header at `at`, if it is valid and its packet fits into the file.
    pub(super) fn head_at(&self, at: u64) -> Result<Result<(PacketHead, u32), Loss>, TraceError> {
        let left = self.len - at;
        let mut bytes = [0; PACKET_HEAD_LEN];
        if left < PACKET_HEAD_LEN as u64 {
            let found = format!("{left} bytes to the end of the file");
            return Ok(Err(self.truncation(at, "a packet head of 64 bytes", &found)));
        }
        self.read(at, &mut bytes)?;
        let (head, crc) = match PacketHead::parse(&bytes, at) {
            Ok(parsed) => parsed,
            Err(TraceError::Bad { expected, found, .. }) => {
                return Ok(Err(self.damage(at, &expected, &found)));
            }
            Err(error) => return Err(error),
        };
        let length = u64::from(head.length);
        if length > left - PACKET_HEAD_LEN as u64 {
            let found = format!("{} to the end of the file", left - PACKET_HEAD_LEN as u64);
            return Ok(Err(self.truncation(at, &format!("a packet of {length} bytes"), &found)));
        }
        if length > MAX_PACKET_LEN {
            let expected = format!("a packet of at most {MAX_PACKET_LEN} bytes");
            return Ok(Err(self.damage(at, &expected, &length.to_string())));
        }
        Ok(Ok((head, crc)))
    }

    pub(super) fn packet_at(&self, at: u64) -> Result<Result<Packet, Loss>, TraceError> {
        let (head, crc) = match self.head_at(at)? {
            Ok(parsed) => parsed,
            Err(loss) => return Ok(Err(loss)),
        };
        let mut bytes = vec![0; PACKET_HEAD_LEN + head.length as usize];
        self.read(at, &mut bytes)?;
        if !PacketHead::checks(&bytes, crc) {
            return Ok(Err(self.wrong_checksum(at, &head, crc)));
        }
        bytes.drain(..PACKET_HEAD_LEN);
        Ok(Ok(Packet { head, payload: bytes }))
    }

    pub(super) fn wrong_checksum(&self, at: u64, head: &PacketHead, crc: u32) -> Loss {
        let loss = self.damage(at, &format!("a packet with checksum {crc:08x}"), "another checksum");
        let mut loss = Loss { lwp: Some(head.lwp), from: Some(head.first_tick), ..loss };
        loss.end_at(Some(head.last_tick));
        loss
    }

    pub(super) fn damage(&self, at: u64, expected: &str, found: &str) -> Loss {
        let (path, at) = self.place(at);
        let detail = format!("{}: at byte {at}: expected {expected}, found {found}", path.display());
        Loss::new(LossKind::Damaged, Level::User, detail)
    }

    pub(super) fn truncation(&self, at: u64, expected: &str, found: &str) -> Loss {
        Loss { kind: LossKind::Truncated, ..self.damage(at, expected, found) }
    }
}

fn check_head(path: &Path, file: &File, len: u64) -> Result<(), TraceError> {
    let bad = |at, expected: String, found: String| TraceError::Bad {
        file: path.to_path_buf(),
        at,
        expected,
        found,
    };
    let mut head = vec![0; FILE_HEAD_LEN.min(len as usize)];
    file.read_exact_at(&mut head, 0).map_err(|error| TraceError::Io(path.to_path_buf(), error))?;
    if !head.starts_with(FILE_MAGIC) || head.len() < FILE_HEAD_LEN {
        return Err(bad(
            0,
            "a user trace (\"FUTTRACE\")".into(),
            format!("{:?}", String::from_utf8_lossy(&head)),
        ));
    }
    let version = Cut::new(&head[8..], 8).u32("version")?;
    if version != VERSION {
        return Err(bad(8, format!("version {VERSION}"), format!("version {version}")));
    }
    Ok(())
}

/// Searches damaged bytes for valid packets.
///
/// A candidate must be read to its end to check it. A file can be full of headers that all claim the rest of the file.
/// So the search gives up when it has read many times the length of the file in vain. Ordinary damage causes far less.
pub(super) struct Search<'s> {
    source: &'s UserTraceFile,
    /// Number of bytes that may still be read without finding a packet.
    left: u64,
}

impl Search<'_> {
    pub(super) fn new(source: &UserTraceFile) -> Search<'_> {
        Search { source, left: source.len.saturating_mul(16) }
    }

    /// Whether there is a packet with a correct checksum at `at`. False if it is too long to check.
    pub(super) fn is_whole(&mut self, at: u64) -> Result<bool, TraceError> {
        let Ok((head, _)) = self.source.head_at(at)? else { return Ok(false) };
        let Some(left) = self.left.checked_sub(PACKET_HEAD_LEN as u64 + u64::from(head.length)) else {
            return Ok(false);
        };
        let is_whole = self.source.packet_at(at)?.is_ok();
        if !is_whole {
            self.left = left;
        }
        Ok(is_whole)
    }

    /// The offset of the next valid packet, at `from` or later.
    pub(super) fn next_whole(&mut self, from: u64) -> Result<Option<u64>, TraceError> {
        let mut at = from;
        // The window grows: usually the next packet is near.
        let mut window = vec![0; 1 << 10];
        while at < self.source.len {
            let len = window.len().min((self.source.len - at) as usize);
            self.source.read(at, &mut window[..len])?;
            for place in (0..len).filter(|place| window[*place..len].starts_with(&PACKET_MAGIC)) {
                if self.is_whole(at + place as u64)? {
                    return Ok(Some(at + place as u64));
                }
            }
            // Windows overlap by three bytes, so that no magic is split between two of them.
            at += if len > 3 && at + (len as u64) < self.source.len { len as u64 - 3 } else { len as u64 };
            window.resize((2 * window.len()).min(1 << 16), 0);
        }
        Ok(None)
    }
}
