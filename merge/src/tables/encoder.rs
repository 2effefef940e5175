//! A row group: every column a chunk, encoded as what it was filled with.

use parquet::{
    errors::ParquetError,
    schema::types::{ColumnDescPtr, SchemaDescPtr},
};

use super::{
    bools::BoolChunk,
    chunk::EncodedChunk,
    column::Cells,
    dictionary::DictionaryChunk,
    differences::DifferenceChunk,
    places::{NumberPlaces, TextPlaces},
    properties::is_difference,
    values::ValueChunk,
};

/// The columns of some rows.
pub(super) type Batch = Vec<Cells>;
/// The columns of a row group, encoded.
pub(super) type Chunks = Result<Vec<EncodedChunk>, ParquetError>;

/// Encodes row groups; shared with the helpers. Every column of ours is one column of the file, lists too.
pub(super) struct Encoder {
    columns: SchemaDescPtr,
}

/// A row group that is being encoded.
pub(super) struct OpenGroup {
    columns: Vec<ColumnEncoder>,
}

enum ColumnEncoder {
    Differences(Box<DifferenceChunk>),
    Numbers(Box<ValueChunk<NumberPlaces>>),
    Texts(Box<ValueChunk<TextPlaces>>),
    Keys(Box<DictionaryChunk>),
    Bools(Box<BoolChunk>),
}

impl Encoder {
    pub(super) fn new(columns: SchemaDescPtr) -> Encoder {
        Encoder { columns }
    }

    /// Begins a row group of batches like this one.
    pub(super) fn begin(&self, batch: &Batch) -> Result<OpenGroup, ParquetError> {
        let columns = self.columns.columns().iter().zip(batch);
        let columns: Result<_, _> =
            columns.map(|(column, cells)| ColumnEncoder::new(column, cells)).collect();
        Ok(OpenGroup { columns: columns? })
    }

    /// Encodes a whole row group.
    pub(super) fn encode(&self, batches: &[Batch]) -> Chunks {
        let Some(first) = batches.first() else { return Ok(Vec::new()) };
        let mut group = self.begin(first)?;
        batches.iter().try_for_each(|batch| group.append(batch))?;
        group.close()
    }
}

impl OpenGroup {
    /// Adds a page to every column.
    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), ParquetError> {
        self.columns.iter_mut().zip(batch).try_for_each(|(column, cells)| column.page(cells))
    }

    pub(super) fn close(self) -> Chunks {
        self.columns.into_iter().map(ColumnEncoder::close).collect()
    }
}

impl ColumnEncoder {
    fn new(column: &ColumnDescPtr, cells: &Cells) -> Result<ColumnEncoder, ParquetError> {
        let described = column.clone();
        Ok(match cells {
            Cells::Numbers(_) if is_difference(column.name()) => {
                ColumnEncoder::Differences(Box::new(DifferenceChunk::new(described)?))
            }
            Cells::Numbers(_) => ColumnEncoder::Numbers(Box::new(ValueChunk::new(described)?)),
            Cells::Texts(_) => ColumnEncoder::Texts(Box::new(ValueChunk::new(described)?)),
            Cells::Keys(_) => ColumnEncoder::Keys(Box::new(DictionaryChunk::new(described)?)),
            Cells::Bools(_) => ColumnEncoder::Bools(Box::new(BoolChunk::new(described)?)),
        })
    }

    fn page(&mut self, cells: &Cells) -> Result<(), ParquetError> {
        match (self, cells) {
            (ColumnEncoder::Differences(chunk), Cells::Numbers(ticks)) => chunk.page(ticks),
            (ColumnEncoder::Numbers(chunk), Cells::Numbers(numbers)) => chunk.page(numbers),
            (ColumnEncoder::Texts(chunk), Cells::Texts(texts)) => chunk.page(texts),
            (ColumnEncoder::Keys(chunk), Cells::Keys(keys)) => chunk.page(keys),
            (ColumnEncoder::Bools(chunk), Cells::Bools(bits)) => chunk.page(bits),
            _ => unreachable!("a column is given in the same way in every batch"),
        }
    }

    fn close(self) -> Result<EncodedChunk, ParquetError> {
        match self {
            ColumnEncoder::Differences(chunk) => chunk.close(),
            ColumnEncoder::Numbers(chunk) => chunk.close(),
            ColumnEncoder::Texts(chunk) => chunk.close(),
            ColumnEncoder::Keys(chunk) => chunk.close(),
            ColumnEncoder::Bools(chunk) => chunk.close(),
        }
    }
}
