//! One chunk of a column, page by page, in the format of Parquet: what encoders of ours share.
//!
//! ```text
//!   dictionary page  | value | value | …        those that occur, in the order of their first row
//!   data page        | u32 length, repetition levels | u32 length, definition levels | values |     levels where the
//!   data page        | …                                                                            column has them
//! ```

use bytes::Bytes;
use parquet::{
    basic::{Compression, Encoding, EncodingMask},
    column::{
        page::{CompressedPage, Page, PageWriter},
        writer::ColumnCloseResult,
    },
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, OffsetIndexBuilder},
        page_index::column_index::ColumnIndexMetaData,
        statistics::Statistics,
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

use super::{levels::Levels, properties::level};

/// A column chunk that is being encoded.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    zstd: zstd::bulk::Compressor<'static>,
    pages: Vec<(CompressedPage, u64)>,
    /// Those of its pages, and of what they begin with.
    encodings: Vec<Encoding>,
}

/// An encoded column chunk, and what its file has to say about it.
pub(super) struct EncodedChunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// What a chunk ends with, beside its pages.
#[derive(Default)]
pub(super) struct Ending {
    /// The values of the dictionary and how many they are, if pages refer to one.
    pub(super) dictionary: Option<(Vec<u8>, usize)>,
    pub(super) statistics: Option<Statistics>,
    /// The ranges of the pages.
    pub(super) index: Option<ColumnIndexMetaData>,
}

impl Chunk {
    pub(super) fn new(column: ColumnDescPtr) -> Result<Chunk, ParquetError> {
        let zstd = zstd::bulk::Compressor::new(level().compression_level())?;
        Ok(Chunk { column, zstd, pages: Vec::new(), encodings: vec![Encoding::PLAIN, Encoding::RLE] })
    }

    pub(super) fn column(&self) -> &ColumnDescPtr {
        &self.column
    }

    /// A page begins with its levels.
    pub(super) fn begin(&self, levels: &Levels) -> Vec<u8> {
        let mut page = Vec::with_capacity(levels.len());
        levels.write(&self.column, &mut page);
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
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
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

    /// Puts the dictionary in front.
    pub(super) fn close(mut self, ending: Ending) -> Result<EncodedChunk, ParquetError> {
        let mut bytes = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut bytes);
        let (mut compressed, mut uncompressed, mut data_offset) = (0, 0, 0);
        if let Some((values, len)) = &ending.dictionary {
            let page = Page::DictionaryPage {
                buf: self.zstd.compress(values)?.into(),
                num_values: *len as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let written = pages.write_page(CompressedPage::new(page, values.len()))?;
            (compressed, uncompressed) = (written.compressed_size, written.uncompressed_size);
            data_offset = written.bytes_written as i64;
        }
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
        let mut metadata = ColumnChunkMetaData::builder(self.column)
            .set_compression(Compression::ZSTD(level()))
            .set_encodings_mask(EncodingMask::new_from_encodings(self.encodings.iter()))
            .set_total_compressed_size(compressed as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_num_values(values)
            .set_dictionary_page_offset(ending.dictionary.map(|_| 0))
            .set_data_page_offset(data_offset);
        if let Some(statistics) = ending.statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: all_rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: ending.index,
            offset_index: Some(offsets.build()),
        };
        Ok(EncodedChunk { bytes: bytes.into_inner()?.into(), close })
    }
}
