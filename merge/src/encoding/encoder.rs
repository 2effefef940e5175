//! A row group. Every column becomes a chunk, encoded according to its contents.

use std::{mem, sync::Arc};

use parquet::{
    basic::Type,
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

/// A column of fewer numbers is not worth another encoding.
const LEAST_COUNTED: usize = 1 << 10;

/// Whether each of the first numbers of a column is greater than the one before, as in the table of user threads: the differences
/// are mostly 1. For 262144 of them a dictionary takes 430 kB, which a reader has to decode to find one; differences take 0.6 kB.
fn counts_up(column: &ColumnDescPtr, numbers: &[i64]) -> bool {
    column.physical_type() == Type::INT64
        && column.max_rep_level() == 0
        && numbers.len() >= LEAST_COUNTED
        && numbers.is_sorted_by(|a, b| a < b)
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
            Cells::Numbers(numbers) if is_difference(column) || counts_up(column, &numbers.values) => {
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

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, Int64Array};
    use parquet::file::statistics::Statistics;

    use super::{super::there_and_back::there_and_back, *};

    fn size(numbers: impl Iterator<Item = i64>) -> usize {
        let schema =
            parquet::schema::parser::parse_message_type("message m { required int64 thread; }").unwrap();
        let mut filled = super::super::column::Filled::<Vec<i64>>::default();
        numbers.for_each(|number| filled.push(Some(number)));
        let schema = Arc::new(parquet::schema::types::SchemaDescriptor::new(Arc::new(schema)));
        let mut group = OpenGroup::new(schema);
        group.append(&vec![Cells::Numbers(filled)]).unwrap();
        group.close().unwrap().iter().map(|chunk| chunk.bytes.len()).sum()
    }

    #[test]
    fn numbers_that_count_up_are_differences_and_come_back_whatever_follows() {
        let rows = 20 * LEAST_COUNTED as i64;
        assert!(size((0..rows).map(|n| 7 + n)) < size((0..rows).map(|n| 7 + n / 2)) / 20);
        let pages: [Vec<Option<i64>>; 3] = [
            (0..rows).map(|n| Some(2 * n)).collect(),
            (0..rows).map(|n| (n % 3 > 0).then_some(n)).collect(),
            (0..rows).rev().map(Some).collect(),
        ];
        let pages = pages.map(|page| Arc::new(Int64Array::from(page)) as ArrayRef);
        let (read, statistics) = there_and_back(&pages);
        let pages: Vec<&dyn Array> = pages.iter().map(|page| page.as_ref()).collect();
        assert_eq!(&read, &arrow::compute::concat(&pages).unwrap());
        let nulls = Some((rows as u64).div_ceil(3));
        assert_eq!(statistics, Statistics::int64(Some(0), Some(2 * rows - 2), None, nulls, false));
    }
}
