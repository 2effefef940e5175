//! Cuts little-endian values off a slice. The error of a cut names the value that was expected.

use std::{fmt, path::PathBuf};

/// An error in a user trace, with its position.
#[derive(Debug)]
pub enum TraceError {
    /// The file could not be read at all.
    Io(PathBuf, std::io::Error),
    /// Invalid bytes.
    Bad {
        /// The file; empty if the bytes are from memory.
        file: PathBuf,
        /// Byte offset in the file.
        at: u64,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Io(file, error) => write!(f, "{}: {error}", file.display()),
            TraceError::Bad { file, at, expected, found } => {
                write!(f, "{}: at byte {at}: expected {expected}, found {found}", file.display())
            }
        }
    }
}

impl std::error::Error for TraceError {}

/// The rest of a payload, and its offset in the file.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Cut<'a> {
    /// Starts cutting `bytes`, which are at offset `at` in their file.
    pub fn new(bytes: &'a [u8], at: u64) -> Cut<'a> {
        Cut { rest: bytes, at }
    }

    /// Whether everything was cut off.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of bytes that are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn bytes(&mut self, len: usize, what: &str) -> Result<&'a [u8], TraceError> {
        let Some((cut, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.bad(format!("{len} bytes of {what}"), format!("{} to the end", self.rest.len())));
        };
        self.rest = rest;
        self.at += len as u64;
        Ok(cut)
    }

    /// The next byte.
    ///
    /// # Errors
    /// At the end.
    pub fn u8(&mut self, what: &str) -> Result<u8, TraceError> {
        Ok(self.array::<1>(what)?[0])
    }

    /// The next `u32`.
    ///
    /// # Errors
    /// If fewer than 4 bytes are left.
    pub fn u32(&mut self, what: &str) -> Result<u32, TraceError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// The next `u64`.
    ///
    /// # Errors
    /// If fewer than 8 bytes are left.
    pub fn u64(&mut self, what: &str) -> Result<u64, TraceError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// The next text: a `u32` length, and its bytes. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// If fewer bytes are left than the length.
    pub fn text(&mut self, what: &str) -> Result<String, TraceError> {
        let len = self.u32(what)?;
        Ok(String::from_utf8_lossy(self.bytes(len as usize, what)?).into_owned())
    }

    /// An error at this offset.
    pub fn bad(&self, expected: String, found: String) -> TraceError {
        TraceError::Bad { file: PathBuf::new(), at: self.at, expected, found }
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], TraceError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N, what)?);
        Ok(array)
    }
}

/// Appends a text in the form that [`Cut::text`] reads.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A text as a payload.
#[cfg(feature = "probes")]
pub(crate) fn encode_text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    push_text(&mut out, text);
    out
}
