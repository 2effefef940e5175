//! The files of an archive in an open folder: by descriptors instead of paths.

use std::{fs::File, io};

use otf2_writer::Storage;
use sigmund_files::Folder;

/// The folder of an archive, and `traces` in it.
#[derive(Debug)]
pub(super) struct FolderStorage {
    archive: Folder,
    traces: Folder,
}

impl FolderStorage {
    /// Uses an open, empty folder.
    pub(super) fn new(archive: Folder) -> io::Result<FolderStorage> {
        let traces = archive.create_folder("traces")?;
        Ok(FolderStorage { archive, traces })
    }

    fn locate<'n>(&self, name: &'n str) -> (&Folder, &'n str) {
        match name.strip_prefix("traces/") {
            Some(name) => (&self.traces, name),
            None => (&self.archive, name),
        }
    }
}

impl Storage for FolderStorage {
    fn create(&self, name: &str) -> io::Result<File> {
        let (folder, name) = self.locate(name);
        folder.create_file(name)
    }

    fn reopen(&self, name: &str) -> io::Result<File> {
        let (folder, name) = self.locate(name);
        folder.reopen_file(name)
    }
}
