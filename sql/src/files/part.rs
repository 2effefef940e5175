//! One Parquet file of a table, held open.

use std::{
    fmt::Display,
    fs::{File, Metadata},
    io::{self, BufReader, Read},
    ops::Range,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Schema},
};
use bytes::Bytes;
use datafusion::parquet::{
    self,
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    },
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader},
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
};
use sigmund_files::Folder;
use sigmund_model::tables::{FileEnd, Table};

use super::{Store, StoredFile, arrow_schema};
use crate::{Error, ErrorKind};

/// Number of bytes whose checksum is computed at a time.
const PIECE: usize = 1 << 20;

/// Added to an error about a file that is not the one that was written.
pub(super) const CHANGED: &str =
    " (a super-trace that was changed on purpose is read when its file `checksums` is removed)";

/// What was found if a file was written to after it was opened. (One that was replaced is read as it was.)
const OVERWRITTEN: &str = "one that was overwritten while it was open; open the super-trace again";

/// Rows per batch. Large, so that the names of many threads come in few batches.
const ROWS_AT_ONCE: usize = 1 << 16;

/// An open file that has the columns of its table.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The path, for messages.
    path: PathBuf,
    name: String,
    bytes: FileBytes,
    modified: SystemTime,
    /// A text that distinguishes it from other files of this name.
    version: String,
    rows: u64,
}

impl Part {
    /// Opens a file in the folder of a table. `path` is for messages.
    ///
    /// # Errors
    /// When its end is not as expected, or when it is no Parquet file or lacks a column of the table.
    pub(crate) fn open(
        folder: &Folder,
        path: &Path,
        name: &str,
        (table, end): (&Table, Option<FileEnd>),
    ) -> Result<Part, Error> {
        let file = folder.open_file(name).map_err(|error| unreadable(path, &error))?;
        let found = file.metadata().map_err(|error| unreadable(path, &error))?;
        let modified = found.modified().map_err(|error| unreadable(path, &error))?;
        // The same on all machines that share the folder.
        let version = format!("{} {} {}", found.ino(), found.mtime(), found.mtime_nsec());
        let bytes = FileBytes { source: Source::File(Arc::new(file), modified), len: found.len() };
        if let Some(end) = end {
            bytes.check_end(end).map_err(|found| unreadable(path, &found))?;
        }
        Part::checked((path, name), (bytes, modified, version), table)
    }

    /// As [`open`](Self::open), for a file in a store.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); when the store does not answer.
    pub(crate) fn open_stored(
        store: &dyn Store,
        path: &Path,
        name: &str,
        table: &Table,
    ) -> Result<Part, Error> {
        let file = store.open(table.name, name).map_err(|error| unreadable(path, &error))?;
        let (modified, version) = (file.modified(), file.version().to_string());
        let bytes = FileBytes { len: file.size(), source: Source::Stored(file) };
        Part::checked((path, name), (bytes, modified, version), table)
    }

    fn checked(
        (path, name): (&Path, &str),
        (bytes, modified, version): (FileBytes, SystemTime, String),
        table: &Table,
    ) -> Result<Part, Error> {
        let (path, name) = (path.to_path_buf(), name.to_string());
        let mut part = Part { path, name, bytes, modified, version, rows: 0 };
        let footer = part.footer()?;
        check_columns(&part.path, footer.schema(), table)?;
        part.rows = u64::try_from(footer.metadata().file_metadata().num_rows()).unwrap_or_default();
        Ok(part)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.len
    }

    pub(crate) fn modified(&self) -> SystemTime {
        self.modified
    }

    /// A text that distinguishes it from other files of this name.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The bytes of a range that lies in the file.
    ///
    /// # Errors
    /// When they cannot be read; [`io::ErrorKind::UnexpectedEof`] when the range goes beyond the end.
    pub(crate) fn bytes(&self, range: Range<u64>) -> io::Result<Bytes> {
        self.bytes.read(range)
    }

    /// Appends the given columns of all rows to `batches`.
    ///
    /// # Errors
    /// When the file is damaged.
    pub(crate) fn read(&self, columns: &[&str], batches: &mut Vec<RecordBatch>) -> Result<(), Error> {
        let footer = self.footer()?;
        let columns = ProjectionMask::columns(footer.parquet_schema(), columns.iter().copied());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), footer);
        let reader = reader.with_projection(columns).with_batch_size(ROWS_AT_ONCE).build();
        for batch in reader.map_err(|error| unreadable(&self.path, &error))? {
            batches.push(batch.map_err(|error| unreadable(&self.path, &error))?);
        }
        Ok(())
    }

    /// Whether both are the same file.
    pub(super) fn is(&self, other: &Part) -> bool {
        self.path == other.path
    }

    /// Checks that its end is as it was written.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn check_end(&self, end: FileEnd) -> Result<(), Error> {
        self.bytes.check_end(end).map_err(|found| self.unreadable(&found))
    }

    /// Reads the whole file, to check it.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn check(&self) -> Result<(), Error> {
        let footer = self.footer()?;
        self.check_groups(&footer, (0..footer.metadata().num_row_groups()).collect())
    }

    /// Reads these row groups, to check them.
    ///
    /// # Errors
    /// When they are damaged.
    pub(super) fn check_groups(&self, footer: &ArrowReaderMetadata, groups: Vec<usize>) -> Result<(), Error> {
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), footer.clone());
        let mut reader = reader.with_row_groups(groups).build().map_err(|error| self.unreadable(&error))?;
        reader.try_for_each(|batch| batch.map(drop).map_err(|error| self.unreadable(&error)))
    }

    /// Reads this row group, to check it.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn check_group(&self, footer: &ArrowReaderMetadata, group: usize) -> Result<(), Error> {
        self.check_groups(footer, vec![group])
    }

    /// Reads the pages of this row group without decoding their values. The reader compares their checksums.
    ///
    /// # Errors
    /// When one is damaged.
    pub(super) fn check_pages(&self, footer: &ArrowReaderMetadata, group: usize) -> Result<(), Error> {
        let group = footer.metadata().row_group(group);
        let rows = usize::try_from(group.num_rows()).map_err(|error| self.unreadable(&error))?;
        let bytes = Arc::new(self.bytes.clone());
        for column in group.columns() {
            let pages = SerializedPageReader::new(Arc::clone(&bytes), column, rows, None);
            let mut pages = pages.map_err(|error| self.unreadable(&error))?;
            pages.try_for_each(|page| page.map(drop).map_err(|error| self.unreadable(&error)))?;
        }
        Ok(())
    }

    /// Its bytes, for a Parquet reader.
    pub(super) fn reader(&self) -> impl ChunkReader + Clone + 'static {
        self.bytes.clone()
    }

    /// The error for this file if it is damaged.
    pub(super) fn unreadable(&self, error: &dyn Display) -> Error {
        match self.bytes.is_overwritten() {
            true => unreadable(&self.path, &OVERWRITTEN),
            false => unreadable(&self.path, error),
        }
    }

    /// Reads its footer.
    ///
    /// # Errors
    /// When the footer cannot be read.
    pub(super) fn footer(&self) -> Result<ArrowReaderMetadata, Error> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&self.bytes);
        let metadata = metadata.map_err(|error| self.unreadable(&error))?;
        arrow_schema::check(metadata.file_metadata()).map_err(|found| self.unreadable(&found))?;
        check_places(&metadata, self.bytes.len).map_err(|found| self.unreadable(&found))?;
        let footer = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new());
        footer.map_err(|error| self.unreadable(&error))
    }
}

/// The bytes of a file, read at offsets. Readers that share a `File` would also share its position, and disturb each
/// other.
#[derive(Clone, Debug)]
struct FileBytes {
    source: Source,
    /// The length when it was opened.
    len: u64,
}

#[derive(Clone, Debug)]
enum Source {
    /// A file, and when it had been modified last before it was opened.
    File(Arc<File>, SystemTime),
    Stored(Arc<dyn StoredFile>),
}

impl FileBytes {
    /// Checks that its end is as it was written. If not, the error describes what was found.
    fn check_end(&self, expected: FileEnd) -> Result<(), String> {
        if self.len != expected.len {
            return Err(format!("{} bytes instead of {}{CHANGED}", self.len, expected.len));
        }
        // Read in pieces, because the length comes from an untrusted file.
        let mut found = crc32fast::Hasher::new();
        for from in (expected.from..self.len).step_by(PIECE) {
            let piece =
                self.read(from..self.len.min(from + PIECE as u64)).map_err(|error| error.to_string())?;
            found.update(&piece);
        }
        let crc = found.finalize();
        if crc != expected.crc {
            let FileEnd { from, crc: written, .. } = expected;
            return Err(format!(
                "checksum {crc:08x} of the bytes from {from} on instead of {written:08x}{CHANGED}"
            ));
        }
        Ok(())
    }

    /// Whether the file was written to after it was opened.
    fn is_overwritten(&self) -> bool {
        let Source::File(file, modified) = &self.source else { return false };
        let is_same =
            |found: Metadata| found.len() == self.len && found.modified().is_ok_and(|at| at == *modified);
        !file.metadata().is_ok_and(is_same)
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        // Checked before anything is allocated, because a damaged footer may contain any number.
        if range.start > range.end || range.end > self.len {
            let message = format!(
                "expected bytes of a file of {}, found a range {} to {}",
                self.len, range.start, range.end
            );
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        match &self.source {
            Source::File(file, _) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                let read = file.read_exact_at(&mut bytes, range.start);
                if self.is_overwritten() {
                    return Err(io::Error::other(OVERWRITTEN));
                }
                read.map(|()| bytes.into())
            }
            Source::Stored(file) => file.read(range),
        }
    }
}

impl Length for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for FileBytes {
    type T = BufReader<ReadAt>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<BufReader<ReadAt>> {
        Ok(BufReader::new(ReadAt { bytes: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        Ok(self.read(start..start.saturating_add(length as u64))?)
    }
}

/// Reads sequentially, beginning at an offset.
struct ReadAt {
    bytes: FileBytes,
    at: u64,
}

impl Read for ReadAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &self.bytes.source {
            Source::File(file, _) => file.read_at(buffer, self.at)?,
            Source::Stored(_) => {
                let left = self.bytes.len.saturating_sub(self.at).min(buffer.len() as u64);
                let bytes = self.bytes.read(self.at..self.at + left)?;
                buffer[..bytes.len()].copy_from_slice(&bytes);
                bytes.len()
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

fn unreadable(path: &Path, error: &dyn Display) -> Error {
    Error::at(ErrorKind::Unreadable, path, format!("expected a whole Parquet file, found: {error}"))
}

/// Checks that the offsets in a footer lie inside of the file. Parquet readers panic if an offset is before its
/// beginning.
fn check_places(metadata: &ParquetMetaData, len: u64) -> Result<(), String> {
    let is_inside = |from: i64, length: i64| {
        let (from, length) = (u64::try_from(from).ok()?, u64::try_from(length).ok()?);
        from.checked_add(length).filter(|end| *end <= len)
    };
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let pages = [(first, column.compressed_size()), (column.data_page_offset(), 0)];
        let index = |from: Option<i64>, length: Option<i32>| from.zip(length.map(i64::from));
        let indexes = [
            index(column.column_index_offset(), column.column_index_length()),
            index(column.offset_index_offset(), column.offset_index_length()),
            index(column.bloom_filter_offset(), Some(column.bloom_filter_length().unwrap_or_default())),
        ];
        for (from, length) in pages.into_iter().chain(indexes.into_iter().flatten()) {
            if is_inside(from, length).is_none() {
                return Err(format!(
                    "column `{}` at {from} with {length} bytes, in a file of {len}",
                    column.column_path().string()
                ));
            }
        }
    }
    Ok(())
}

fn check_columns(path: &Path, schema: &Schema, table: &Table) -> Result<(), Error> {
    for column in table.columns {
        let expected = column.ty.data_type();
        let found = match schema.field_with_name(column.name) {
            Ok(field) if same_values(field.data_type(), &expected) => continue,
            Ok(field) => field.data_type().to_string(),
            Err(_) => "no such column".to_string(),
        };
        let message = format!("column `{}`: expected {expected}, found {found}", column.name);
        return Err(Error::at(ErrorKind::Schema, path, message));
    }
    Ok(())
}

/// Whether both types hold the same values. Another writer may have replaced a dictionary by plain texts, or Utf8 by
/// LargeUtf8.
fn same_values(found: &DataType, expected: &DataType) -> bool {
    let is_text = |t: &DataType| match t {
        DataType::Dictionary(_, values) => {
            matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        _ => matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    };
    match (found, expected) {
        (DataType::List(a) | DataType::LargeList(a), DataType::List(b)) => {
            same_values(a.data_type(), b.data_type())
        }
        _ => found == expected || (is_text(found) && is_text(expected)),
    }
}
