//! A super-trace that a test has merged, and its tables.

use std::path::{Path, PathBuf};

use sigmund_merge::{Error, MergeOptions, Summary};
use tempfile::TempDir;

use super::{Inputs, Table, tsv};

/// A super-trace, in a folder that is removed when this is dropped.
pub(crate) struct Merged {
    pub(super) folder: TempDir,
    pub(crate) summary: Summary,
}

impl Merged {
    /// Merges a listing drawn as for [`tsv`], with the line of its columns.
    pub(crate) fn of(drawn: &str) -> Merged {
        Merged::of_bytes(tsv(drawn).as_bytes()).unwrap()
    }

    /// Merges the bytes of a listing.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Merged, Error> {
        Inputs::new().file("drawn.tsv", bytes).try_merge(&MergeOptions::default())
    }

    /// Merges an existing file.
    pub(crate) fn of_file(path: &Path) -> Result<Merged, Error> {
        Inputs::new().path(path).try_merge(&MergeOptions::default())
    }

    /// The directory of the super-trace.
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

    /// The numbers of user events whose CPU is the same by the probe and the kernel, is different, and is known by only
    /// one of them.
    pub(crate) fn witnesses(&self) -> (u64, u64, u64) {
        let info = self.table("info", &["key", "value"]);
        let single = info.iter().find_map(|line| line.strip_prefix("witness_single ")).unwrap();
        (self.summary.witness_agree, self.summary.witness_disagree, single.parse().unwrap())
    }
}
