//! The files of a recorder during a recording. If it is killed, only the content of the kernel's buffers is lost:
//! ```text
//! kernel.unfinished       the description: everything in a trace.dat except the pages, as JSON
//! kernel.pages-B-C        the pages of CPU C of the description's buffer B, in time order
//! ```
//!
//! [`finish`] makes the trace.dat from them, at the end of a recording or after the recorder was killed. They are
//! removed when it is complete, the description last: while the description exists, the trace.dat is not complete.
//!
//! A recording that is cut into parts has such files for each part (`file_names.rs`), until its trace.dat is written.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use sigmund_files::Folder;

use super::file_names::{FileNames, part_name, part_number, unfinished_parts};
use super::recorded::Summary;
use super::system::System;
use super::writer::{self, Compression};
use crate::error::{Error, ErrorKind, ParseError};

/// A recording that is not cut into parts.
pub(super) const WHOLE: FileNames = FileNames(None);
/// The version of the description's format.
const VERSION: u32 = 1;
/// Largest description. A usual one has some 100 KB, most of them declarations of events.
const MAX_DESCRIPTION: u64 = 64 << 20;
/// Largest number of CPUs of all buffers, as in a trace.dat.
const MAX_CPUS: usize = crate::trace_dat::MAX_REGIONS;

/// Everything in a trace.dat except the pages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Description {
    version: u32,
    pub(super) system: System,
    pub(super) buffers: Vec<Buffer>,
}

/// One instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Buffer {
    /// Its name in the file; empty for the top buffer.
    pub(super) name: String,
    /// `trace_clock`, as the kernel writes it.
    pub(super) clock: String,
    pub(super) page_size: usize,
    pub(super) cpus: Vec<BufferCpu>,
}

/// One CPU of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BufferCpu {
    pub(super) cpu: u32,
    /// `per_cpu/cpuN/stats`, as the kernel writes it; empty during the recording.
    pub(super) stats: String,
    /// Events lost in the kernel's buffer.
    pub(super) lost: u64,
}

/// Whether a folder has files of an unfinished tracepoint recording, or of an unfinished part of one.
pub fn is_unfinished(folder: &Folder) -> bool {
    folder.has(WHOLE.description()) || folder.names().is_ok_and(|names| !unfinished_parts(&names).is_empty())
}

/// Whether a recorder uses this file name in addition to the name of a whole trace.dat.
pub fn is_part(name: &str) -> bool {
    name == WHOLE.description()
        || name.starts_with(&WHOLE.pages())
        || name.ends_with(".dat.unfinished")
        || part_number(name).is_some()
}

/// The result of [`finish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What was written.
    pub summary: Summary,
    /// Whether the recorder reached the end of the recording, and only failed to write the trace.dat. If not, the
    /// events that were in the kernel's buffers are missing at the end.
    pub stopped: bool,
}

/// Makes the trace.dat of a recorder that was killed, or that could not write it. It has version 7, is uncompressed,
/// and has all complete pages that the recorder had moved to files. `None` if there is nothing to finish. The folder
/// must be the caller's own, and the recorder must have ended.
///
/// # Errors
/// If the description is invalid, or the file cannot be written. The parts are then unchanged.
pub fn finish(folder: &Folder, name: &str) -> Result<Option<Finished>, Error> {
    finish_files(folder, WHOLE, name, Compression::None)
}

/// Like [`finish`], for all parts of a recording that are not trace.dats yet. The result has each part with its number,
/// the oldest first.
///
/// # Errors
/// Like [`finish`]. The parts before the one with the error are finished.
pub fn finish_parts(folder: &Folder) -> Result<Vec<(u32, Finished)>, Error> {
    let names = folder.names().map_err(|e| Error::io(folder.path(), e))?;
    let mut finished = Vec::new();
    for part in unfinished_parts(&names) {
        finished.extend(write_part(folder, part)?.map(|written| (part, written)));
    }
    Ok(finished)
}

/// Writes the trace.dat of a closed part, and removes the files from which it is made. `None` if it has already been
/// written, or if the part was removed.
///
/// # Errors
/// Like [`finish`].
pub fn write_part(folder: &Folder, part: u32) -> Result<Option<Finished>, Error> {
    finish_files(folder, FileNames(Some(part)), &part_name(part), Compression::None)
}

/// Like [`write_part`], with pages compressed by zstd. When `stop` is set, it ends with an error, and the part is
/// unchanged.
///
/// # Errors
/// Like [`finish`]; and [`std::io::ErrorKind::Interrupted`] because of `stop`.
pub fn write_part_compressed(
    folder: &Folder,
    part: u32,
    stop: &AtomicBool,
) -> Result<Option<Finished>, Error> {
    finish_files(folder, FileNames(Some(part)), &part_name(part), Compression::Zstd(stop))
}

/// Removes all files of a part. The description is removed first: without it, the other files are not a recording.
///
/// # Errors
/// If a file cannot be removed.
pub fn remove_part(folder: &Folder, part: u32) -> Result<(), Error> {
    let names = folder.names().map_err(|e| Error::io(folder.path(), e))?;
    let mut of_part: Vec<&str> = names
        .iter()
        .filter_map(|name| name.to_str())
        .filter(|name| part_number(name) == Some(part))
        .collect();
    let description = FileNames(Some(part)).description();
    of_part.sort_by_key(|name| **name != description);
    let removed = of_part.iter().map(|name| match folder.remove_file(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|e| Error::io(&folder.path_of(name), e)),
    });
    // Tries all files before it returns the first error.
    removed.collect::<Vec<_>>().into_iter().collect()
}

fn finish_files(
    folder: &Folder,
    files: FileNames,
    name: &str,
    compression: Compression<'_>,
) -> Result<Option<Finished>, Error> {
    if !folder.has(files.description()) {
        return Ok(None);
    }
    folder.check_own().map_err(|e| Error::io(folder.path(), e))?;
    let description = Description::read(folder, files)?;
    if folder.has(name) {
        // The trace.dat was complete: the recorder was killed while removing its files.
        remove_files(folder, files)?;
        return Ok(None);
    }
    let mut pages = Pages::open(folder, files, &description)?;
    let stopped = description.buffers.iter().flat_map(|buffer| &buffer.cpus).all(|cpu| !cpu.stats.is_empty());
    let summary = write(folder, files, name, &description, &mut pages, compression)?;
    Ok(Some(Finished { summary, stopped }))
}

/// Writes the trace.dat, and removes the files from which it is made.
pub(super) fn write(
    folder: &Folder,
    files: FileNames,
    name: &str,
    description: &Description,
    pages: &mut Pages,
    compression: Compression<'_>,
) -> Result<Summary, Error> {
    let path = folder.path_of(name);
    let io = |error| Error::io(&path, error);
    let partial = format!("{name}.unfinished");
    if folder.has(&partial) {
        folder.remove_file(&partial).map_err(io)?;
    }
    let mut out = folder.create_file(&partial).map_err(io)?;
    let written = writer::write(description, &mut pages.0, &mut out, compression)
        .and_then(|summary| folder.rename(&partial, name).map(|()| summary));
    if written.is_err() {
        // The first error is the one to report.
        let _ = folder.remove_file(&partial);
    }
    let summary = written.map_err(io)?;
    remove_files(folder, files)?;
    Ok(summary)
}

/// Removes the files from which a trace.dat is made; the description is removed last.
pub(super) fn remove_files(folder: &Folder, files: FileNames) -> Result<(), Error> {
    let io = |error| Error::io(folder.path(), error);
    let (names, pages) = (folder.names().map_err(io)?, files.pages());
    for name in names.iter().filter(|name| name.as_encoded_bytes().starts_with(pages.as_bytes())) {
        folder.remove_file(name).map_err(io)?;
    }
    let description = files.description();
    if folder.has(&description) { folder.remove_file(&description).map_err(io) } else { Ok(()) }
}

/// The files of pages: for each buffer, one for each of its CPUs.
#[derive(Debug)]
pub(super) struct Pages(pub(super) Vec<Vec<File>>);

impl Pages {
    /// Creates the files.
    pub(super) fn create(folder: &Folder, files: FileNames, buffers: &[Buffer]) -> Result<Pages, Error> {
        let mut made = Vec::new();
        let created = Pages::each(files, buffers, |name| {
            let file = folder.create_file(name).map_err(|e| Error::io(&folder.path_of(name), e))?;
            made.push(name.to_owned());
            Ok(file)
        });
        if created.is_err() {
            // The first error is the one to report.
            made.iter().for_each(|name| drop(folder.remove_file(name)));
        }
        created
    }

    /// Opens the files that a recorder left.
    fn open(folder: &Folder, files: FileNames, description: &Description) -> Result<Pages, Error> {
        let buffers = &description.buffers;
        Pages::each(files, buffers, |name| {
            folder.open_file(name).map_err(|e| Error::io(&folder.path_of(name), e))
        })
    }

    fn each(
        names: FileNames,
        buffers: &[Buffer],
        mut file: impl FnMut(&str) -> Result<File, Error>,
    ) -> Result<Pages, Error> {
        let of_buffer = |(number, buffer): (usize, &Buffer)| {
            buffer.cpus.iter().map(|cpu| file(&names.pages_of(number, cpu.cpu))).collect()
        };
        let files: Result<Vec<Vec<File>>, Error> = buffers.iter().enumerate().map(of_buffer).collect();
        files.map(Pages)
    }
}

impl Description {
    pub(super) fn new(system: System, buffers: Vec<Buffer>) -> Description {
        Description { version: VERSION, system, buffers }
    }

    /// Writes it to the folder, replacing the previous one.
    pub(super) fn write(&self, folder: &Folder, files: FileNames) -> Result<(), Error> {
        let name = files.description();
        let json = serde_json::to_vec(self).map_err(std::io::Error::from);
        let written = json.and_then(|json| folder.write_file(&name, &json));
        written.map_err(|e| Error::io(&folder.path_of(&name), e))
    }

    fn read(folder: &Folder, files: FileNames) -> Result<Description, Error> {
        let name = files.description();
        let path = folder.path_of(&name);
        let io = |error| Error::io(&path, error);
        let bad = |part: &'static str, expected: &str, found: String| {
            let parse_error = ParseError { at: 0, part, expected: expected.to_owned(), found };
            Error::at(ErrorKind::Damaged, &path, parse_error)
        };
        let mut json = Vec::new();
        let file = folder.open_file(&name).map_err(io)?;
        file.take(MAX_DESCRIPTION).read_to_end(&mut json).map_err(io)?;
        let described: Description = serde_json::from_slice(&json)
            .map_err(|error| bad("description", "the description of a recording", error.to_string()))?;
        if described.version != VERSION {
            return Err(bad("version", &VERSION.to_string(), described.version.to_string()));
        }
        let cpus: usize = described.buffers.iter().map(|buffer| buffer.cpus.len()).sum();
        if cpus > MAX_CPUS {
            return Err(bad("CPUs of all buffers", &format!("at most {MAX_CPUS}"), cpus.to_string()));
        }
        for Buffer { page_size, cpus, .. } in &described.buffers {
            if let Some(pair) = cpus.windows(2).find(|pair| pair[0].cpu >= pair[1].cpu) {
                let found = format!("{} before {}", pair[0].cpu, pair[1].cpu);
                return Err(bad("CPUs of a buffer", "CPUs in ascending order", found));
            }
            if !page_size.is_power_of_two() || !(4096..=1 << 20).contains(page_size) {
                let expected = "a power of two from 4096 to 1048576";
                return Err(bad("page size of a buffer", expected, page_size.to_string()));
            }
        }
        Ok(described)
    }
}
