//! One chunk of a boolean column: one bit per row.

use parquet::{basic::Encoding, errors::ParquetError, schema::types::ColumnDescPtr};

use super::{
    bits::Bits,
    chunk::{Chunk, EncodedChunk, Ending},
    levels::Levels,
};

/// A column chunk that is being encoded.
pub(super) struct BoolChunk {
    chunk: Chunk,
}

impl BoolChunk {
    pub(super) fn new(column: ColumnDescPtr) -> Result<BoolChunk, ParquetError> {
        Ok(BoolChunk { chunk: Chunk::new(column) })
    }

    /// Encodes some rows as a page.
    pub(super) fn page(&mut self, rows: &Bits) -> Result<(), ParquetError> {
        let mut page = self.chunk.begin(&Levels::all(rows.len()))?;
        let values = page.len();
        rows.words(1).for_each(|word| page.extend(word.to_le_bytes()));
        page.truncate(values + rows.len().div_ceil(8));
        self.chunk.page(page, rows.len(), rows.len(), Encoding::PLAIN)
    }

    pub(super) fn close(self) -> Result<EncodedChunk, ParquetError> {
        self.chunk.close(Ending::default())
    }
}
