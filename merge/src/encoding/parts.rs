//! The Parquet files of one table. Takes batches, encodes row groups, and appends them to the parts in time order.
//!
//! With a worker pool, the batches of a row group are gathered, and a worker encodes the whole row group; if all
//! workers are busy, this thread does. Without a pool, each batch is encoded at once, while it is in the cache. The
//! resulting bytes are the same.

use std::{
    collections::VecDeque,
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, TryRecvError},
    },
};

use arrow::datatypes::SchemaRef;
use parquet::{
    arrow::ArrowWriter, errors::ParquetError, file::writer::SerializedFileWriter,
    schema::types::SchemaDescPtr,
};
use sigmund_files::Folder;
use sigmund_model::tables::{Checksums, FileEnd, Table};

use super::{
    chunk::EncodedChunk,
    encoder::{Batch, Chunks, Encoding, OpenGroup},
    properties::properties,
};
use crate::{error::Error, worker_pool::WorkerPool};

/// Number of rows of a row group. A reader can skip a row group by its statistics; a worker encodes one at a time.
const ROW_GROUP_ROWS: usize = 256 << 10;
/// Number of rows of a part.
const PART_ROWS: usize = 8 << 20;
/// Maximum number of row groups of one table that are being encoded. Later ones wait for the first of them.
const MOST_UNDER_WAY: usize = 16;

/// The files of one table.
pub(crate) struct Parts {
    table: &'static Table,
    folder: Folder,
    schema: SchemaRef,
    columns: SchemaDescPtr,
    pool: Option<Arc<WorkerPool>>,
    /// The row group that is being gathered. Without a pool, `open` contains its rows instead.
    gathered: Vec<Batch>,
    open: Option<OpenGroup>,
    rows: usize,
    under_way: VecDeque<UnderWay>,
    /// The part that is being written.
    file: SerializedFileWriter<File>,
    path: PathBuf,
    part: usize,
    part_rows: usize,
    output: Output,
}

/// What has been written, of all tables.
#[derive(Clone, Default)]
pub(crate) struct Output {
    /// Bytes of encoded rows.
    pub(crate) bytes: Arc<AtomicU64>,
    /// The ends of the files that are complete.
    checksums: Arc<Mutex<Checksums>>,
}

impl Output {
    /// The ends of the files that are complete.
    pub(crate) fn checksums(&self) -> Checksums {
        self.checksums.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, name: String, end: FileEnd) {
        self.checksums.lock().unwrap_or_else(PoisonError::into_inner).insert(name, end);
    }
}

/// A row group on its way to the file.
enum UnderWay {
    Encoded(usize, Chunks),
    WithWorker(usize, Receiver<Chunks>),
}

impl Parts {
    pub(crate) fn create(
        table: &'static Table,
        folder: Folder,
        pool: Option<Arc<WorkerPool>>,
        output: Output,
    ) -> Result<Parts, Error> {
        let schema = table.schema();
        let path = folder.path_of(part_name(0));
        let file = open_part(&schema, &folder, 0)?;
        Ok(Parts {
            table,
            folder,
            columns: Arc::new(file.schema_descr().clone()),
            schema,
            pool,
            gathered: Vec::new(),
            open: None,
            rows: 0,
            under_way: VecDeque::new(),
            file,
            path,
            part: 0,
            part_rows: 0,
            output,
        })
    }

    /// Adds `rows` rows. This may complete a row group.
    pub(crate) fn write(&mut self, batch: Batch, rows: usize) -> Result<(), Error> {
        if rows == 0 {
            return Ok(());
        }
        self.rows += rows;
        if self.pool.is_some() {
            self.gathered.push(batch);
        } else {
            self.encode(&batch)?;
        }
        if self.rows >= ROW_GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    fn encode(&mut self, batch: &Batch) -> Result<(), Error> {
        let open = self.open.get_or_insert_with(|| OpenGroup::new(Arc::clone(&self.columns)));
        let result = open.append(batch);
        result.map_err(self.failed())
    }

    /// Ends the row group.
    fn end_group(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let under_way = match (self.open.take(), &self.pool) {
            (Some(open), _) => UnderWay::Encoded(rows, open.close()),
            (None, Some(pool)) => {
                let batches = std::mem::take(&mut self.gathered);
                let mut encoding = Encoding::new(Arc::clone(&self.columns), batches);
                let (send, receive) = mpsc::channel();
                let task = move || {
                    let Some(chunks) = encoding.step() else { return true };
                    // There is no receiver any more if the merge has ended with an error.
                    let _ = send.send(chunks);
                    false
                };
                if let Err(mut task) = pool.encode(task) {
                    while task() {}
                }
                UnderWay::WithWorker(rows, receive)
            }
            (None, None) => return Ok(()),
        };
        self.under_way.push_back(under_way);
        self.append(MOST_UNDER_WAY)
    }

    /// Completes the files.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.end_group()?;
        self.append(0)?;
        let name = format!("{}/{}", self.table.name, part_name(self.part));
        self.output.note(name, close(self.file, &self.path)?);
        Ok(())
    }

    /// Appends the row groups that are encoded, in their order. Waits until at most `left` row groups are left.
    fn append(&mut self, left: usize) -> Result<(), Error> {
        while let Some(first) = self.under_way.pop_front() {
            let (rows, chunks) = match first {
                UnderWay::Encoded(rows, chunks) => (rows, chunks),
                UnderWay::WithWorker(rows, receiver) => match receiver.try_recv() {
                    Ok(chunks) => (rows, chunks),
                    Err(TryRecvError::Empty) if self.under_way.len() < left => {
                        self.under_way.push_front(UnderWay::WithWorker(rows, receiver));
                        return Ok(());
                    }
                    Err(_) => (rows, receiver.recv().expect("a worker that panicked ends the merge")),
                },
            };
            let chunks = chunks.map_err(self.failed())?;
            self.append_group(rows, chunks)?;
        }
        Ok(())
    }

    fn append_group(&mut self, rows: usize, chunks: Vec<EncodedChunk>) -> Result<(), Error> {
        if self.part_rows >= PART_ROWS {
            self.next_part()?;
        }
        self.part_rows += rows;
        let before = self.file.bytes_written();
        let appended = append_chunks(&mut self.file, chunks);
        appended.map_err(self.failed())?;
        self.output.bytes.fetch_add((self.file.bytes_written() - before) as u64, Ordering::Relaxed);
        Ok(())
    }

    fn next_part(&mut self) -> Result<(), Error> {
        let name = format!("{}/{}", self.table.name, part_name(self.part));
        self.part += 1;
        self.part_rows = 0;
        let path = self.folder.path_of(part_name(self.part));
        let file = open_part(&self.schema, &self.folder, self.part)?;
        let before = std::mem::replace(&mut self.file, file);
        self.output.note(name, close(before, &self.path)?);
        self.path = path;
        Ok(())
    }

    fn failed(&self) -> impl Fn(ParquetError) -> Error + use<> {
        let path = self.path.clone();
        move |error| Error::Parquet { path: path.clone(), error }
    }
}

fn part_name(part: usize) -> String {
    format!("part-{part:05}.parquet")
}

fn open_part(schema: &SchemaRef, folder: &Folder, part: usize) -> Result<SerializedFileWriter<File>, Error> {
    let path = folder.path_of(part_name(part));
    let file = folder.create_file(part_name(part)).map_err(Error::io(&path))?;
    // Arrow's writer also writes the Arrow schema to the file.
    let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties()));
    let parts = writer.and_then(ArrowWriter::into_serialized_writer);
    let file = parts.map(|(file, _)| file);
    file.map_err(|error| Error::Parquet { path, error })
}

/// Completes a file. Returns its end, that is, what follows its pages.
fn close(file: SerializedFileWriter<File>, path: &Path) -> Result<FileEnd, Error> {
    let from = file.bytes_written() as u64;
    let written = file.into_inner().map_err(|error| Error::Parquet { path: path.to_path_buf(), error })?;
    let end = || {
        let mut end = vec![0; (written.metadata()?.len() - from) as usize];
        written.read_exact_at(&mut end, from)?;
        Ok(FileEnd::new(from, &end))
    };
    end().map_err(Error::io(path))
}

fn append_chunks(
    file: &mut SerializedFileWriter<File>,
    chunks: Vec<EncodedChunk>,
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for EncodedChunk { bytes, close } in chunks {
        group.append_column(&bytes, close)?;
    }
    group.close()?;
    Ok(())
}
