//! The interface to super-traces that are in a store instead of a folder of this machine.

use std::{fmt, io, ops::Range, sync::Arc, time::SystemTime};

use bytes::Bytes;

/// One super-trace in a store, for example in a bucket of objects.
pub trait Store: fmt::Debug + Send + Sync {
    /// The names of the files of a table, in any order.
    ///
    /// # Errors
    /// When the store does not answer. For a table that does not exist, the result is empty.
    fn names(&self, table: &str) -> io::Result<Vec<String>>;

    /// A file of a table.
    ///
    /// # Errors
    /// When there is none of this name, or the store does not answer.
    fn open(&self, table: &str, name: &str) -> io::Result<Arc<dyn StoredFile>>;
}

/// A file in a store: one version of it.
pub trait StoredFile: fmt::Debug + Send + Sync {
    /// The size in bytes.
    fn size(&self) -> u64;

    /// When it was written.
    fn modified(&self) -> SystemTime;

    /// A text that distinguishes it from other files with this name, such as the ETag of an object.
    fn version(&self) -> &str;

    /// The bytes of a range that lies in the file. It may block.
    ///
    /// # Errors
    /// When another file has taken the name, or the store does not answer.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes>;
}
