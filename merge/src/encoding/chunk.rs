//! One chunk of a column, page by page, in the format of Parquet. This is what all our encoders share.
//!
//! ```text
//!   dictionary page  | value | value | …        those that occur, in the order of their first row
//!   data page        | u32 length, repetition levels | u32 length, definition levels | values |     levels where the
//!   data page        | …                                                                            column has them
//! ```

use std::{cell::RefCell, io, mem};

use bytes::Bytes;
use parquet::{
    basic::{Compression, Encoding, EncodingMask},
    column::writer::ColumnCloseResult,
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, OffsetIndexBuilder},
        page_index::column_index::ColumnIndexMetaData,
        statistics::Statistics,
    },
    schema::types::ColumnDescPtr,
};

use super::{
    levels::Levels,
    page::{Compressed, Content, HEAD, Page},
    properties::level,
};

/// A column chunk that is being encoded.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    pages: Vec<(Page, usize)>,
    /// The encodings of its pages, and of the levels at their beginning.
    encodings: Vec<Encoding>,
}

/// An encoded column chunk, and its metadata for the file.
pub(super) struct EncodedChunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// What a chunk needs in addition to its pages when it is closed.
#[derive(Default)]
pub(super) struct Ending {
    /// The values of the dictionary, encoded, and their number, if pages refer to a dictionary.
    pub(super) dictionary: Option<(Vec<u8>, usize)>,
    pub(super) statistics: Option<Statistics>,
    /// The ranges of the pages.
    pub(super) index: Option<ColumnIndexMetaData>,
}

/// What a thread needs to make pages. It is used for one page after the other, of all columns, so it stays in the
/// cache. The tables of a compressor take some hundred KiB.
struct Workbench {
    zstd: zstd::bulk::Compressor<'static>,
    /// Memory for a page.
    page: Vec<u8>,
    compressed: Vec<u8>,
    /// The previous page, and its compressed form. Columns with the same indexes (the code and the name of an event,
    /// the number and the name of a system call) have equal pages one after the other. Then only the first of them is
    /// compressed.
    before: Vec<u8>,
    before_compressed: Compressed,
}

impl Workbench {
    fn new() -> io::Result<Workbench> {
        let zstd = zstd::bulk::Compressor::new(level().compression_level())?;
        let (page, compressed, before, before_compressed) = Default::default();
        Ok(Workbench { zstd, page, compressed, before, before_compressed })
    }

    /// Compresses a page. Its memory is used again for the next page.
    fn compress_page(&mut self, page: Vec<u8>) -> io::Result<Compressed> {
        if page == self.before {
            self.page = page;
        } else {
            self.before_compressed = self.compress(&page)?;
            self.page = mem::replace(&mut self.before, page);
        }
        Ok(self.before_compressed.clone())
    }

    fn compress(&mut self, page: &[u8]) -> io::Result<Compressed> {
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(page.len()));
        self.zstd.compress_to_buffer(page, &mut self.compressed)?;
        Ok(Compressed::new(Bytes::copy_from_slice(&self.compressed)))
    }
}

thread_local! {
    static WORKBENCH: RefCell<Option<Workbench>> = const { RefCell::new(None) };
}

fn with_workbench<T>(work: impl FnOnce(&mut Workbench) -> io::Result<T>) -> io::Result<T> {
    WORKBENCH.with_borrow_mut(|bench| match bench {
        Some(bench) => work(bench),
        None => work(bench.insert(Workbench::new()?)),
    })
}

impl Chunk {
    pub(super) fn new(column: ColumnDescPtr) -> Chunk {
        Chunk { column, pages: Vec::new(), encodings: vec![Encoding::PLAIN, Encoding::RLE] }
    }

    pub(super) fn column(&self) -> &ColumnDescPtr {
        &self.column
    }

    /// Begins a page: writes its levels.
    pub(super) fn begin(&self, levels: &Levels) -> Result<Vec<u8>, ParquetError> {
        let mut page = with_workbench(|bench| Ok(mem::take(&mut bench.page)))?;
        page.clear();
        levels.write(&self.column, &mut page);
        Ok(page)
    }

    /// Adds a page of some rows. `values` is the number of levels, so it includes NULLs.
    pub(super) fn page(
        &mut self,
        page: Vec<u8>,
        rows: usize,
        values: usize,
        encoding: Encoding,
    ) -> Result<(), ParquetError> {
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        let uncompressed = page.len();
        // Longer pages do not fit into a page header. The compressed form takes about as many bytes at most.
        if uncompressed > i32::MAX as usize / 2 {
            return Err(ParquetError::General(format!("a page of {uncompressed} bytes is too long")));
        }
        let compressed = with_workbench(|bench| bench.compress_page(page))?;
        self.pages.push((Page { content: Content::Data(encoding), values, uncompressed, compressed }, rows));
        Ok(())
    }

    /// Ends the chunk. The dictionary comes before its pages.
    pub(super) fn close(self, ending: Ending) -> Result<EncodedChunk, ParquetError> {
        let data: usize = self.pages.iter().map(|(page, _)| page.compressed.bytes.len() + HEAD).sum();
        let dictionary = ending.dictionary.as_ref().map_or(0, |(values, _)| values.len());
        let mut bytes = Vec::with_capacity(data + dictionary);
        let (mut heads, mut uncompressed) = (0, 0);
        if let Some((values, len)) = &ending.dictionary {
            let page = Page {
                content: Content::Dictionary,
                values: *len,
                uncompressed: values.len(),
                compressed: with_workbench(|bench| bench.compress(values))?,
            };
            heads += page.write(&mut bytes);
            uncompressed += page.uncompressed;
        }
        let data_offset = bytes.len();
        let mut offsets = OffsetIndexBuilder::new();
        let (mut all_rows, mut values) = (0, 0);
        for (page, rows) in self.pages {
            let begin = bytes.len();
            heads += page.write(&mut bytes);
            uncompressed += page.uncompressed;
            offsets.append_row_count(rows as i64);
            offsets.append_offset_and_size(begin as i64, (bytes.len() - begin) as i32);
            all_rows += rows as u64;
            values += page.values as i64;
        }
        let mut metadata = ColumnChunkMetaData::builder(self.column)
            .set_compression(Compression::ZSTD(level()))
            .set_encodings_mask(EncodingMask::new_from_encodings(self.encodings.iter()))
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size((uncompressed + heads) as i64)
            .set_num_values(values)
            .set_dictionary_page_offset(ending.dictionary.map(|_| 0))
            .set_data_page_offset(data_offset as i64);
        if let Some(statistics) = ending.statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: all_rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: ending.index,
            offset_index: Some(offsets.build()),
        };
        Ok(EncodedChunk { bytes: bytes.into(), close })
    }
}
