//! One chunk of a column, page by page, in the format of Parquet: what encoders of ours share.
//!
//! ```text
//!   dictionary page  | value | value | …        those that occur, in the order of their first row
//!   data page        | u32 length, repetition levels | u32 length, definition levels | values |     levels where the
//!   data page        | …                                                                            column has them
//! ```

use bytes::Bytes;
use parquet::{
    basic::{Compression, Encoding, EncodingMask, ZstdLevel},
    column::{
        page::{CompressedPage, Page, PageWriter},
        writer::ColumnCloseResult,
    },
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, OffsetIndexBuilder},
        statistics::Statistics,
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

use super::hybrid;

/// A column chunk that is being encoded.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    zstd: zstd::bulk::Compressor<'static>,
    pages: Vec<(CompressedPage, u64)>,
}

/// An encoded column chunk, and what its file has to say about it.
pub(super) struct EncodedChunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// Which values of a page are there, and which lists they are in (Dremel's levels; parquet-format, README.md).
#[derive(Default)]
pub(super) struct Levels {
    pub(super) repetition: Vec<u32>,
    pub(super) definition: Vec<u32>,
}

impl Levels {
    pub(super) fn clear(&mut self) {
        self.repetition.clear();
        self.definition.clear();
    }

    fn write(levels: &[u32], most: i16, page: &mut Vec<u8>) {
        if most == 0 {
            return;
        }
        let at = page.len();
        page.extend([0; 4]);
        hybrid::encode(levels, hybrid::width_of(most as u32), page);
        let length = (page.len() - at - 4) as u32;
        page[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

impl Chunk {
    /// The codec of its pages, which the others of the file need not have.
    fn codec() -> Compression {
        Compression::ZSTD(ZstdLevel::default())
    }

    pub(super) fn new(column: ColumnDescPtr) -> Result<Chunk, ParquetError> {
        let zstd = zstd::bulk::Compressor::new(ZstdLevel::default().compression_level())?;
        Ok(Chunk { column, zstd, pages: Vec::new() })
    }

    pub(super) fn column(&self) -> &ColumnDescPtr {
        &self.column
    }

    /// A page begins with its levels.
    pub(super) fn begin(&self, levels: &Levels) -> Vec<u8> {
        let mut page = Vec::with_capacity(levels.definition.len());
        Levels::write(&levels.repetition, self.column.max_rep_level(), &mut page);
        Levels::write(&levels.definition, self.column.max_def_level(), &mut page);
        page
    }

    /// Adds a page of some rows. `values` are those with a level, also those that are not there.
    pub(super) fn page(
        &mut self,
        page: &[u8],
        rows: usize,
        values: usize,
        encoding: Encoding,
    ) -> Result<(), ParquetError> {
        let compressed = Page::DataPage {
            buf: self.zstd.compress(page)?.into(),
            num_values: values as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.push((CompressedPage::new(compressed, page.len()), rows as u64));
        Ok(())
    }

    /// Puts the dictionary, of `len` values, in front.
    pub(super) fn close(
        mut self,
        dictionary: &[u8],
        len: u32,
        statistics: Option<Statistics>,
    ) -> Result<EncodedChunk, ParquetError> {
        let page = Page::DictionaryPage {
            buf: self.zstd.compress(dictionary)?.into(),
            num_values: len,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let mut bytes = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut bytes);
        let first = pages.write_page(CompressedPage::new(page, dictionary.len()))?;
        let (mut compressed, mut uncompressed) = (first.compressed_size, first.uncompressed_size);
        let data_offset = first.bytes_written as i64;
        let mut offsets = OffsetIndexBuilder::new();
        let (mut all_rows, mut values) = (0, 0);
        for (page, rows) in self.pages {
            let written = pages.write_page(page)?;
            compressed += written.compressed_size;
            uncompressed += written.uncompressed_size;
            offsets.append_row_count(rows as i64);
            offsets.append_offset_and_size(written.offset as i64, written.compressed_size as i32);
            all_rows += rows;
            values += i64::from(written.num_values);
        }
        let encodings = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
        let mut metadata = ColumnChunkMetaData::builder(self.column)
            .set_compression(Chunk::codec())
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(compressed as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_num_values(values)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(data_offset);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: all_rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(offsets.build()),
        };
        Ok(EncodedChunk { bytes: bytes.into_inner()?.into(), close })
    }
}
