//! A super-trace that a test has made: of a drawn listing, or of files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sigmund_merge::{Error, MergeOptions, Summary, merge};
use tempfile::TempDir;

use super::Table;

/// A super-trace in a folder that goes with it.
pub(crate) struct Merged {
    folder: TempDir,
    #[allow(dead_code, reason = "each test binary uses a part")]
    pub(crate) summary: Summary,
}

#[allow(dead_code, reason = "each test binary uses a part")]
impl Merged {
    /// Of a listing drawn with blanks between its columns: a comma separates parameters, `_` is an empty cell.
    pub(crate) fn of(drawn: &str) -> Merged {
        Merged::of_bytes(tsv(drawn).as_bytes()).unwrap()
    }

    /// Of the bytes of a listing.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Merged, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drawn.tsv");
        fs::write(&path, bytes).unwrap();
        Merged::of_files_in(folder, &[path])
    }

    /// Of files; the super-trace is put into `folder`, which is removed in the end.
    pub(crate) fn of_files_in(folder: TempDir, inputs: &[PathBuf]) -> Result<Merged, Error> {
        let out = folder.path().join("out.supertrace");
        match merge(inputs, &out, &MergeOptions::default(), |_| {}) {
            Ok(summary) => Ok(Merged { folder, summary }),
            Err(error) => {
                assert!(!out.exists(), "a merge that failed leaves nothing");
                Err(error)
            }
        }
    }

    /// Of a file.
    pub(crate) fn of_file(path: &Path) -> Result<Merged, Error> {
        Merged::of_files_in(tempfile::tempdir().unwrap(), &[path.to_path_buf()])
    }

    /// The super-trace's directory.
    pub(crate) fn out(&self) -> PathBuf {
        self.folder.path().join("out.supertrace")
    }

    pub(crate) fn read(&self, table: &str) -> Table {
        Table::read(&self.out(), table)
    }

    /// The rows of a table, as lines of these cells.
    pub(crate) fn table(&self, name: &str, columns: &[&str]) -> Vec<String> {
        self.read(name).lines(columns)
    }
}

/// The listing of a drawing.
pub(crate) fn tsv(drawn: &str) -> String {
    drawn.trim().lines().map(|line| tsv_line(line.trim_start()) + "\n").collect()
}

fn tsv_line(line: &str) -> String {
    if line.starts_with('#') {
        return line.to_string();
    }
    let cell = |cell: &str| if cell == "_" { String::new() } else { cell.replace(',', " ") };
    line.split_whitespace().map(cell).collect::<Vec<_>>().join("\t")
}
