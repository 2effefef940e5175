//! A row group. Every column becomes a chunk, encoded according to its contents.

use std::{mem, sync::Arc};

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
    properties::is_difference,
    value_index::{NumberIndex, TextIndex},
    values::ValueChunk,
};

/// The columns of some rows.
pub(super) type Batch = Vec<Cells>;
/// The columns of a row group, encoded.
pub(super) type Chunks = Result<Vec<EncodedChunk>, ParquetError>;

/// A row group that is being encoded. Every column of a table is one column of the file; this includes lists.
pub(super) struct OpenGroup {
    schema: SchemaDescPtr,
    /// Empty until there are rows.
    columns: Vec<ColumnEncoder>,
}

/// A whole row group that is being encoded, batch by batch.
pub(super) struct Encoding {
    group: OpenGroup,
    batches: std::vec::IntoIter<Batch>,
}

enum ColumnEncoder {
    Differences(Box<DifferenceChunk>),
    Numbers(Box<ValueChunk<NumberIndex>>),
    Texts(Box<ValueChunk<TextIndex>>),
    Keys(Box<DictionaryChunk>),
    Bools(Box<BoolChunk>),
}

impl OpenGroup {
    pub(super) fn new(schema: SchemaDescPtr) -> OpenGroup {
        OpenGroup { schema, columns: Vec::new() }
    }

    /// Adds a page to every column.
    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            let columns = self.schema.columns().iter().zip(batch);
            self.columns =
                columns.map(|(column, cells)| ColumnEncoder::new(column, cells)).collect::<Result<_, _>>()?;
        }
        self.columns.iter_mut().zip(batch).try_for_each(|(column, cells)| column.page(cells))
    }

    pub(super) fn close(self) -> Chunks {
        self.columns.into_iter().map(ColumnEncoder::close).collect()
    }
}

impl Encoding {
    /// The encoding of these batches.
    pub(super) fn new(schema: SchemaDescPtr, batches: Vec<Batch>) -> Encoding {
        Encoding { group: OpenGroup::new(schema), batches: batches.into_iter() }
    }

    /// Encodes the next batch. Returns the row group after the last one; then the encoding is done.
    pub(super) fn step(&mut self) -> Option<Chunks> {
        if let Some(batch) = self.batches.next() {
            return self.group.append(&batch).err().map(Err);
        }
        let none = OpenGroup::new(Arc::clone(&self.group.schema));
        Some(mem::replace(&mut self.group, none).close())
    }
}

impl ColumnEncoder {
    fn new(column: &ColumnDescPtr, cells: &Cells) -> Result<ColumnEncoder, ParquetError> {
        let described = column.clone();
        Ok(match cells {
            Cells::Numbers(_) if is_difference(column) => {
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
