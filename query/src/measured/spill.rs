//! Rows of an answer in a temporary file, if there is too little memory for them.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{Mutex, OnceLock, PoisonError},
};

use sigmund_measures::{Spill, Storage};

/// Spills to a file without a name in the folder for temporary files (`TMPDIR`). It is created when the first rows are spilled, and
/// its blocks are freed when the last rows are dropped, even if the process is killed.
pub(super) fn to_temporary_file() -> Spill {
    Spill::new(TemporaryFile::default())
}

#[derive(Debug, Default)]
struct TemporaryFile {
    file: OnceLock<File>,
    end: Mutex<u64>,
}

impl Storage for TemporaryFile {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile()?;
                self.file.get_or_init(|| file)
            }
        };
        file.write_all_at(bytes, *end)?;
        let at = *end;
        *end += bytes.len() as u64;
        Ok(at)
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.file.get().ok_or(io::ErrorKind::NotFound)?;
        let named = |error: io::Error| {
            let place =
                format!("{} (TMPDIR), a file without a name, offset {at}", std::env::temp_dir().display());
            io::Error::new(error.kind(), format!("{place}: {error}"))
        };
        file.read_exact_at(bytes, at).map_err(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_where_append_says() {
        let file = TemporaryFile::default();
        assert!(file.read(0, &mut [0]).is_err() && file.file.get().is_none());
        let places = [&b"one"[..], b"", b"three"].map(|bytes| (file.append(bytes).unwrap(), bytes));
        assert_eq!(places.map(|(at, _)| at), [0, 3, 3]);
        for (at, bytes) in places {
            let mut found = vec![0; bytes.len()];
            file.read(at, &mut found).unwrap();
            assert_eq!(found, bytes);
        }
        let error = file.read(7, &mut [0; 2]).unwrap_err().to_string();
        assert!(error.contains("(TMPDIR), a file without a name, offset 7: "), "{error}");
    }
}
