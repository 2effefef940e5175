//! The same input, given twice: its events happened once, so the second is left out, with a sentence that names both.
//!
//! Inputs are the same if they are the same file (by device and inode), or hold the same bytes. A run is compared file by
//! file. A folder that is a trace is compared with the files of other traces, but for its `metadata`: two recordings may
//! declare the same events. One that has some of its files in common with another input is refused: its events cannot be
//! told apart from those.
//!
//! Two snapshots of one process hold different bytes, and mostly some of the same packets. They are refused, as are a recording and a
//! snapshot of it: each packet has a number that its LWP gives to no other at the same tick.

use std::{
    collections::HashMap,
    fs::{self, File},
    hash::{DefaultHasher, Hasher},
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use fut::trace::UserTrace;
use sigmund_files::open_regular;
use sigmund_model::{Lwp, Pid, Ticks};

use super::namespace::FIRST_WITHOUT_KERNEL;
use crate::error::Error;

/// Bytes at the beginning in which most files of one length differ: user traces have their process there.
const HEAD: usize = 4096;
/// Bytes that are compared at a time.
const CHUNK: usize = 1 << 16;
/// Depth of folders in which a trace may lie, as `fkt_ingest` looks for them.
const MAX_DEPTH: u32 = 16;
/// What makes a folder a trace of CTF, and one of perf.
const CTF_METADATA: &str = "metadata";
const PERF_DATA: &str = "data";

/// The files that were opened so far, and what was left out because it is one of them.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    files: Vec<Known>,
    left_out: Vec<String>,
    /// Each packet of the user traces, with the path of the first that holds it, by its place in `user_traces`.
    packets: HashMap<PacketKey, usize>,
    user_traces: Vec<PathBuf>,
    /// LWPs with numbers that the kernel gives to none.
    without_kernel: u32,
}

/// Process, LWP, number and first tick.
type PacketKey = (Pid, Lwp, u64, Ticks);

/// A file that is an input, or a part of one.
#[derive(Debug)]
struct Known {
    path: PathBuf,
    device: u64,
    inode: u64,
    len: u64,
    /// Hash of how it begins, so that few of many files of one length are read.
    head: u64,
}

/// In what two files are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Same {
    File,
    Bytes,
}

impl Inputs {
    /// Notes the file that is at `path`; `false` if it has been given already, and is to be left out.
    pub(super) fn take_file(&mut self, path: &Path, file: &File) -> Result<bool, Error> {
        let new = Known::of(path, file).map_err(Error::io(path))?;
        if let Some((known, same)) = self.find(&new)? {
            let text = left_out(path, &known.path, same);
            self.left_out.push(text);
            return Ok(false);
        }
        self.files.push(new);
        Ok(true)
    }

    /// The same of a folder that is a trace, or holds some.
    pub(super) fn take_folder(&mut self, path: &Path) -> Result<bool, Error> {
        let mut new = Vec::new();
        collect(path, MAX_DEPTH, &mut new).map_err(Error::io(path))?;
        let mut found = Vec::new();
        for file in &new {
            found.push(self.find(file)?.map(|(known, same)| (known.path.clone(), same)));
        }
        let first = found.iter().position(Option::is_some);
        match first.and_then(|index| Some((&new[index], found[index].as_ref()?))) {
            None => self.files.append(&mut new),
            Some((file, (known, same))) if found.iter().any(Option::is_none) => {
                let same = same.words();
                let expected = "a trace of which no file is given twice";
                let found = format!("{}, which {same} {}", file.path.display(), known.display());
                return Err(Error::bad(path, "folder", expected, found));
            }
            Some((_, (known, same))) => {
                let other = known.parent().unwrap_or(known);
                self.left_out.push(left_out(path, other, *same));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes the packets of a user trace.
    ///
    /// # Errors
    /// When another one holds one of them, too.
    pub(super) fn take_packets(&mut self, path: &Path, trace: &UserTrace) -> Result<(), Error> {
        let place = self.user_traces.len();
        self.user_traces.push(path.to_path_buf());
        for lwp in trace.lwps() {
            for head in lwp.heads() {
                let key = (lwp.pid, lwp.lwp, head.sequence, head.first_tick);
                let first = *self.packets.entry(key).or_insert(place);
                if first != place {
                    let other = self.user_traces[first].display();
                    let found =
                        format!("events of LWP {} that {other} holds, too: merge one of the two", lwp.lwp);
                    return Err(Error::bad(path, "user trace", "events that no other input holds", found));
                }
            }
        }
        Ok(())
    }

    /// What was left out, a sentence each.
    pub(crate) fn left_out(self) -> Vec<String> {
        self.left_out
    }

    /// The number of an LWP of which no kernel event is known: another one each time.
    pub(super) fn number_without_kernel(&mut self) -> Lwp {
        let number = Lwp(FIRST_WITHOUT_KERNEL.saturating_add(self.without_kernel).min(i32::MAX as u32));
        self.without_kernel = self.without_kernel.saturating_add(1);
        number
    }

    /// How many files were left out so far.
    pub(super) fn count_left_out(&self) -> usize {
        self.left_out.len()
    }

    /// The file that a new one is the same as.
    fn find(&self, new: &Known) -> Result<Option<(&Known, Same)>, Error> {
        if let Some(known) = self.files.iter().find(|known| known.is_same_file(new)) {
            return Ok(Some((known, Same::File)));
        }
        for known in self.files.iter().filter(|known| (known.len, known.head) == (new.len, new.head)) {
            if known.has_same_bytes(new)? {
                return Ok(Some((known, Same::Bytes)));
            }
        }
        Ok(None)
    }
}

impl Same {
    fn words(self) -> &'static str {
        match self {
            Same::File => "is the same file as",
            Same::Bytes => "holds the same bytes as",
        }
    }
}

fn left_out(path: &Path, known: &Path, same: Same) -> String {
    format!("{}: left out, because it {} {}", path.display(), same.words(), known.display())
}

impl Known {
    fn of(path: &Path, file: &File) -> io::Result<Known> {
        let metadata = file.metadata()?;
        let mut head = [0; HEAD];
        let len = file.read_at(&mut head, 0)?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&head[..len]);
        Ok(Known {
            path: path.to_path_buf(),
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            head: hasher.finish(),
        })
    }

    fn is_same_file(&self, other: &Known) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Reads both, up to the first difference.
    fn has_same_bytes(&self, other: &Known) -> Result<bool, Error> {
        let mut own = open_regular(&self.path).map_err(Error::io(&self.path))?;
        let mut others = open_regular(&other.path).map_err(Error::io(&other.path))?;
        let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
        loop {
            let read = fill(&mut own, &mut left).map_err(Error::io(&self.path))?;
            let also_read = fill(&mut others, &mut right).map_err(Error::io(&other.path))?;
            if left[..read] != right[..also_read] {
                return Ok(false);
            }
            if read == 0 {
                return Ok(true);
            }
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// The files with events of the traces at or below a folder. Symbolic links are not followed; what cannot be read is left
/// to the reader of the format.
fn collect(folder: &Path, depth: u32, files: &mut Vec<Known>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let is_trace =
        entries.iter().any(|entry| entry.file_name() == CTF_METADATA || entry.file_name() == PERF_DATA);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            // Whoever may not look into it finds that out when the trace is opened.
            let _ = collect(&path, depth - 1, files);
        } else if kind.is_file()
            && is_trace
            && name != CTF_METADATA
            && !name.as_encoded_bytes().starts_with(b".")
            && let Ok(known) = open_regular(&path).and_then(|file| Known::of(&path, &file))
            && known.len > 0
        {
            files.push(known);
        }
    }
    Ok(())
}
