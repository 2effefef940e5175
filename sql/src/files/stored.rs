//! Super-traces that are not in a folder of this machine: what a store has to offer.

use std::{fmt, io, ops::Range, sync::Arc, time::SystemTime};

use bytes::Bytes;

/// One super-trace in a store, as a bucket of objects is.
pub trait Store: fmt::Debug + Send + Sync {
    /// The names of the files of a table, in any order.
    ///
    /// # Errors
    /// When the store does not answer. A table that is not there has no names.
    fn names(&self, table: &str) -> io::Result<Vec<String>>;

    /// A file of a table.
    ///
    /// # Errors
    /// When there is none of this name, or the store does not answer.
    fn open(&self, table: &str, name: &str) -> io::Result<Arc<dyn StoredFile>>;
}

/// A file in a store: one version of it.
pub trait StoredFile: fmt::Debug + Send + Sync {
    /// In bytes.
    fn size(&self) -> u64;

    /// When it was written.
    fn modified(&self) -> SystemTime;

    /// What other files that had this name do not have, as the ETag of an object.
    fn version(&self) -> &str;

    /// The bytes of a range that lies in the file. It may block.
    ///
    /// # Errors
    /// When another file has taken the name, or the store does not answer.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes>;
}
