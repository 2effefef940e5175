//! Rows outside of memory.

use std::{
    fmt, io,
    ops::Range,
    sync::{Arc, OnceLock},
};

/// A place for bytes outside of memory, such as a temporary file.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Adds bytes after all that were added before. Returns the offset of the first.
    ///
    /// # Errors
    /// When they cannot be stored. What was stored before can still be read.
    fn append(&self, bytes: &[u8]) -> io::Result<u64>;

    /// Reads bytes from an offset.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Where rows go for which there is too little memory.
#[derive(Clone, Debug)]
pub struct Spill(Arc<Spilling>);

#[derive(Debug)]
struct Spilling {
    storage: Box<dyn Storage>,
    /// Why bytes could not be read.
    failure: OnceLock<String>,
}

impl Spill {
    /// Rows go to this storage.
    pub fn new(storage: impl Storage + 'static) -> Spill {
        Spill(Arc::new(Spilling { storage: Box::new(storage), failure: OnceLock::new() }))
    }

    /// Why rows could not be read.
    pub(super) fn failure(&self) -> Option<&str> {
        self.0.failure.get().map(String::as_str)
    }

    pub(super) fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.0.storage.append(bytes)
    }

    /// Reads `range` of the bytes that begin at the offset `from`. If they cannot be read, zeros take their place, and
    /// [`failure`](Self::failure) tells why: rows are read by iterators, which have no errors.
    pub(super) fn read(&self, from: u64, range: Range<usize>, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.resize(range.len(), 0);
        if let Err(error) = self.0.storage.read(from + range.start as u64, bytes) {
            bytes.fill(0);
            self.0.failure.get_or_init(|| error.to_string());
        }
    }
}
