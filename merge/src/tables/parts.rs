//! The Parquet files of one table: batches in, row groups encoded, parts appended in the order of time.
//!
//! With helpers, a row group is gathered as it is and encoded as a whole by one of them, or here if they are busy.
//! Without, each batch is encoded at once, while it is in the cache. The bytes that come out are the same.

use std::{
    collections::VecDeque,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, TryRecvError},
    },
};

use arrow::datatypes::{FieldRef, SchemaRef};
use parquet::{
    arrow::{
        ArrowWriter,
        arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves},
    },
    errors::ParquetError,
    file::writer::SerializedFileWriter,
    schema::types::{ColumnDescPtr, SchemaDescPtr},
};
use sigmund_model::tables::Table;

use super::{
    chunk::EncodedChunk,
    column::Cells,
    dictionary::DictionaryChunk,
    properties::{is_difference, properties},
    values::ValueChunk,
};
use crate::{error::Error, helpers::Helpers};

/// Rows of a row group: what a reader can skip by its statistics, and what a helper encodes at a time.
const ROW_GROUP_ROWS: usize = 256 << 10;
/// Rows of a part.
const PART_ROWS: usize = 8 << 20;
/// Row groups of one table that may be under way: those behind wait for the first.
const MOST_UNDER_WAY: usize = 16;

/// The columns of some rows.
type Batch = Vec<Cells>;
type Chunks = Result<Vec<Chunk>, ParquetError>;

/// A column of a row group that is being encoded: by Arrow's writer, or as places in a list of values.
enum ColumnEncoder {
    Arrow(Box<ArrowColumnWriter>),
    Dictionary(Box<DictionaryChunk>),
    Values(Box<ValueChunk>),
}

/// A column of a row group, encoded.
enum Chunk {
    Arrow(ArrowColumnChunk),
    Ours(EncodedChunk),
}

/// The files of one table.
pub(super) struct Parts {
    folder: PathBuf,
    table: &'static Table,
    schema: SchemaRef,
    encoder: Arc<Encoder>,
    helpers: Option<Arc<Helpers>>,
    /// The row group that is being gathered; without helpers, the writers that have its rows already.
    gathered: Vec<Batch>,
    open: Option<Vec<ColumnEncoder>>,
    rows: usize,
    under_way: VecDeque<UnderWay>,
    /// The part that is being written.
    file: SerializedFileWriter<File>,
    path: PathBuf,
    part: usize,
    part_rows: usize,
    /// Bytes of encoded rows, of all tables.
    written: Arc<AtomicU64>,
}

/// A row group on its way to the file.
enum UnderWay {
    Encoded(usize, Chunks),
    WithHelper(usize, Receiver<Chunks>),
}

/// Encodes row groups; shared with the helpers.
struct Encoder {
    schema: SchemaRef,
    columns: SchemaDescPtr,
    factory: ArrowRowGroupWriterFactory,
}

impl Parts {
    pub(super) fn create(
        table: &'static Table,
        folder: &Path,
        helpers: Option<Arc<Helpers>>,
        written: Arc<AtomicU64>,
    ) -> Result<Parts, Error> {
        let schema = table.schema();
        let path = folder.join(part_name(0));
        let (file, factory) = open_part(table, &schema, &path)?;
        Ok(Parts {
            folder: folder.to_path_buf(),
            table,
            encoder: Arc::new(Encoder {
                schema: Arc::clone(&schema),
                columns: Arc::new(file.schema_descr().clone()),
                factory,
            }),
            schema,
            helpers,
            gathered: Vec::new(),
            open: None,
            rows: 0,
            under_way: VecDeque::new(),
            file,
            path,
            part: 0,
            part_rows: 0,
            written,
        })
    }

    /// Adds `rows` rows. A row group may end with them.
    pub(super) fn write(&mut self, batch: Batch, rows: usize) -> Result<(), Error> {
        if rows == 0 {
            return Ok(());
        }
        self.rows += rows;
        if self.helpers.is_some() {
            self.gathered.push(batch);
        } else {
            self.encode(&batch)?;
        }
        if self.rows >= ROW_GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    fn encode(&mut self, batch: &Batch) -> Result<(), Error> {
        let encoder = Arc::clone(&self.encoder);
        let open = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(encoder.begin().map_err(self.failed())?),
        };
        let result = encoder.encode(open, batch);
        result.map_err(self.failed())
    }

    /// Ends the row group.
    fn end_group(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let under_way = match (self.open.take(), &self.helpers) {
            (Some(open), _) => UnderWay::Encoded(rows, close(open)),
            (None, Some(helpers)) => {
                let (encoder, batches) = (Arc::clone(&self.encoder), std::mem::take(&mut self.gathered));
                let (send, receive) = mpsc::channel();
                let task = move || {
                    // Nobody waits for it any more if the merge has ended with an error.
                    let _ = send.send(encoder.encode_group(&batches));
                };
                if let Err(task) = helpers.encode(task) {
                    task();
                }
                UnderWay::WithHelper(rows, receive)
            }
            (None, None) => return Ok(()),
        };
        self.under_way.push_back(under_way);
        self.append(MOST_UNDER_WAY)
    }

    /// Completes the files.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.end_group()?;
        self.append(0)?;
        let path = self.path;
        self.file.close().map_err(|error| Error::Parquet { path, error })?;
        Ok(())
    }

    /// Appends the row groups that are encoded, in their order, and waits until at most so many are left.
    fn append(&mut self, left: usize) -> Result<(), Error> {
        while let Some(first) = self.under_way.pop_front() {
            let (rows, chunks) = match first {
                UnderWay::Encoded(rows, chunks) => (rows, chunks),
                UnderWay::WithHelper(rows, receiver) => match receiver.try_recv() {
                    Ok(chunks) => (rows, chunks),
                    Err(TryRecvError::Empty) if self.under_way.len() < left => {
                        self.under_way.push_front(UnderWay::WithHelper(rows, receiver));
                        return Ok(());
                    }
                    Err(_) => (rows, receiver.recv().expect("a helper that panicked ends the merge")),
                },
            };
            let chunks = chunks.map_err(self.failed())?;
            self.append_group(rows, chunks)?;
        }
        Ok(())
    }

    fn append_group(&mut self, rows: usize, chunks: Vec<Chunk>) -> Result<(), Error> {
        if self.part_rows >= PART_ROWS {
            self.next_part()?;
        }
        self.part_rows += rows;
        let before = self.file.bytes_written();
        let appended = append_chunks(&mut self.file, chunks);
        appended.map_err(self.failed())?;
        self.written.fetch_add((self.file.bytes_written() - before) as u64, Ordering::Relaxed);
        Ok(())
    }

    fn next_part(&mut self) -> Result<(), Error> {
        self.part += 1;
        self.part_rows = 0;
        let path = self.folder.join(part_name(self.part));
        let (file, _) = open_part(self.table, &self.schema, &path)?;
        let before = std::mem::replace(&mut self.file, file);
        before.close().map_err(self.failed())?;
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

fn open_part(
    table: &Table,
    schema: &SchemaRef,
    path: &Path,
) -> Result<(SerializedFileWriter<File>, ArrowRowGroupWriterFactory), Error> {
    let file = File::create_new(path).map_err(Error::io(path))?;
    let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties(table)));
    let parts = writer.and_then(ArrowWriter::into_serialized_writer);
    parts.map_err(|error| Error::Parquet { path: path.to_path_buf(), error })
}

fn append_chunks(file: &mut SerializedFileWriter<File>, chunks: Vec<Chunk>) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for chunk in chunks {
        match chunk {
            Chunk::Arrow(chunk) => chunk.append_to_row_group(&mut group)?,
            Chunk::Ours(EncodedChunk { bytes, close }) => group.append_column(&bytes, close)?,
        }
    }
    group.close()?;
    Ok(())
}

fn close(columns: Vec<ColumnEncoder>) -> Chunks {
    let close = |column| match column {
        ColumnEncoder::Arrow(writer) => writer.close().map(Chunk::Arrow),
        ColumnEncoder::Dictionary(chunk) => chunk.close().map(Chunk::Ours),
        ColumnEncoder::Values(chunk) => chunk.close().map(Chunk::Ours),
    };
    columns.into_iter().map(close).collect()
}

impl Encoder {
    fn begin(&self) -> Result<Vec<ColumnEncoder>, ParquetError> {
        // The number of a row group only matters where files are encrypted.
        let writers = self.factory.create_column_writers(0)?;
        let fields = self.schema.fields().iter().zip(self.columns.columns());
        let encoder = |((field, column), writer): ((&FieldRef, &ColumnDescPtr), ArrowColumnWriter)| {
            match ValueChunk::takes(field.data_type()) && !is_difference(field) {
                true => Ok(ColumnEncoder::Values(Box::new(ValueChunk::new(Arc::clone(column))?))),
                false => Ok(ColumnEncoder::Arrow(Box::new(writer))),
            }
        };
        fields.zip(writers).map(encoder).collect()
    }

    /// Every column of ours is one column of the file, lists too.
    fn encode(&self, columns: &mut [ColumnEncoder], batch: &Batch) -> Result<(), ParquetError> {
        let fields = self.schema.fields().iter().zip(self.columns.columns());
        for (((field, description), cells), column) in fields.zip(batch).zip(columns) {
            match (cells, &mut *column) {
                (Cells::Keys(keys), ColumnEncoder::Dictionary(chunk)) => chunk.page(keys)?,
                (Cells::Keys(keys), ColumnEncoder::Arrow(_) | ColumnEncoder::Values(_)) => {
                    let mut chunk = DictionaryChunk::new(Arc::clone(description))?;
                    chunk.page(keys)?;
                    *column = ColumnEncoder::Dictionary(Box::new(chunk));
                }
                (Cells::Array(array), ColumnEncoder::Arrow(writer)) => {
                    for leaf in compute_leaves(field, array)? {
                        writer.write(&leaf)?;
                    }
                }
                (Cells::Array(array), ColumnEncoder::Values(chunk)) => chunk.page(array)?,
                (Cells::Array(_), ColumnEncoder::Dictionary(_)) => {
                    unreachable!("a column is given in the same way in every batch")
                }
            }
        }
        Ok(())
    }

    fn encode_group(&self, batches: &[Batch]) -> Chunks {
        let mut columns = self.begin()?;
        batches.iter().try_for_each(|batch| self.encode(&mut columns, batch))?;
        close(columns)
    }
}
