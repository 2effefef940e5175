//! Folders: which of them are traces, and which of their files are streams.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use sigmund_files::Folder;

use crate::error::{Error, ErrorKind, ParseError};
use crate::input::Input;

/// A folder with a file of this name is a trace.
const METADATA: &str = "metadata";
/// LTTng's session folders are 5 levels deep: domain, uid, 1000, 64-bit; and a folder for each rotation.
const MAX_DEPTH: u32 = 16;
/// Largest metadata. It is text; LTTng's for the whole kernel is below 2 MB.
const MAX_METADATA: u64 = 32 << 20;

/// Folders at or below `folder` with a non-empty metadata file, sorted by name. Symbolic links are not followed.
pub(super) fn traces(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    look(folder, MAX_DEPTH, &mut found)?;
    found.sort();
    Ok(found)
}

fn look(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        let kind = entry.file_type().map_err(|e| Error::io(&entry.path(), e))?;
        if kind.is_dir() && depth > 0 {
            look(&entry.path(), depth - 1, found)?;
        } else if entry.file_name() == METADATA {
            // LTTng leaves an empty file if no program has registered.
            let len = entry.metadata().map_err(|e| Error::io(&entry.path(), e))?.len();
            if kind.is_file() && len > 0 {
                found.push(folder.to_owned());
            }
        }
    }
    Ok(())
}

/// The bytes of a folder's metadata.
pub(super) fn metadata(folder: &Path) -> Result<Vec<u8>, Error> {
    let path = folder.join(METADATA);
    let opened = Folder::open(folder).and_then(|folder| folder.open_file(METADATA));
    let file = opened.map_err(|e| Error::io(&path, e))?;
    let mut bytes = Vec::new();
    file.take(MAX_METADATA + 1).read_to_end(&mut bytes).map_err(|e| Error::io(&path, e))?;
    if bytes.len() as u64 > MAX_METADATA {
        let expected = format!("at most {MAX_METADATA} bytes");
        let parse_error =
            ParseError { at: MAX_METADATA, part: "metadata", expected, found: "more".to_owned() };
        return Err(Error::at(ErrorKind::Unsupported, &path, parse_error));
    }
    Ok(bytes)
}

/// The files of a folder that may be streams, and those that cannot be read.
#[derive(Default)]
pub(super) struct Streams {
    pub(super) files: Vec<Input>,
    /// Symbolic links, FIFOs, devices, sockets; files that may not be read.
    pub(super) refused: Vec<Error>,
}

/// All files except the metadata, hidden ones, empty ones and folders.
pub(super) fn streams(path: &Path) -> Result<Streams, Error> {
    let folder = Folder::open(path).map_err(|e| Error::io(path, e))?;
    let names = folder.names().map_err(|e| Error::io(path, e))?;
    let mut streams = Streams::default();
    for name in names {
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if hidden || name == METADATA || folder.has_folder(&name) {
            continue;
        }
        match Input::open_in(&folder, &name) {
            Ok(input) if input.len() > 0 => streams.files.push(input),
            Ok(_) => {}
            Err(error) => streams.refused.push(error),
        }
    }
    Ok(streams)
}
