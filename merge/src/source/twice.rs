//! The same input, given twice. Its events happened only once, so the second input is left out, with a sentence that
//! names both.
//!
//! Inputs are the same if they are the same file (by device and inode), or contain the same bytes. A run is compared
//! file by file. A folder that is a trace is compared with the files of other traces, except for its `metadata`: two
//! recordings may declare the same events. If a folder has only some files in common with another input, it is refused,
//! because its events cannot be distinguished from those of the other.
//!
//! Two snapshots of one process contain different bytes, but usually some of the same packets. They are refused, and so
//! are a recording and a snapshot of it. Common packets are found by their numbers: an LWP gives no two packets the same
//! number and the same first tick.

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

/// Number of bytes at the beginning in which most files of the same length differ. User traces have their process
/// there.
const HEAD: usize = 4096;
/// Number of bytes that are compared at a time.
const CHUNK: usize = 1 << 16;
/// Maximum depth of folders in which a trace may be, as in `fkt_ingest`.
const MAX_DEPTH: u32 = 16;
/// The file that makes a folder a CTF trace. The next one makes it a perf trace.
const CTF_METADATA: &str = "metadata";
const PERF_DATA: &str = "data";

/// The files that were opened so far, and the inputs that were left out because they are among these.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    files: Vec<Known>,
    left_out: Vec<String>,
    /// Each packet of the user traces, with the index in `user_traces` of the first trace that contains it.
    packets: HashMap<PacketKey, usize>,
    user_traces: Vec<PathBuf>,
    /// Number of LWPs that got a number which the kernel gives to none.
    without_kernel: u32,
}

/// Process, LWP, number and first tick.
type PacketKey = (Pid, Lwp, u64, Ticks);

/// A file that is an input, or part of one.
#[derive(Debug)]
struct Known {
    path: PathBuf,
    device: u64,
    inode: u64,
    len: u64,
    /// Hash of its beginning. Because of it, only few of many files of the same length have to be read.
    head: u64,
}

/// How two files are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Same {
    File,
    Bytes,
}

impl Inputs {
    /// Notes the file at `path`. `false` if it was already given, and is to be left out.
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

    /// The same for a folder that is a trace, or contains some.
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

    /// Records the packets of a user trace.
    ///
    /// # Errors
    /// If another user trace has one of these packets, too.
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

    /// What was left out, one sentence for each input.
    pub(crate) fn left_out(self) -> Vec<String> {
        self.left_out
    }

    /// A number for an LWP without known kernel events. It is different each time.
    pub(super) fn number_without_kernel(&mut self) -> Lwp {
        let number = Lwp(FIRST_WITHOUT_KERNEL.saturating_add(self.without_kernel).min(i32::MAX as u32));
        self.without_kernel = self.without_kernel.saturating_add(1);
        number
    }

    /// Number of files that were left out so far.
    pub(super) fn count_left_out(&self) -> usize {
        self.left_out.len()
    }

    /// The known file that a new file is the same as.
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

/// Collects the files with events of the traces at or below a folder. Symbolic links are not followed. Files that
/// cannot be read are left to the reader of the format.
fn collect(folder: &Path, depth: u32, files: &mut Vec<Known>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let is_trace =
        entries.iter().any(|entry| entry.file_name() == CTF_METADATA || entry.file_name() == PERF_DATA);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            // If access to the folder is denied, that is reported when the trace is opened.
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
