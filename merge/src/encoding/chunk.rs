//! One chunk of a column, page by page, in the format of Parquet: what encoders of ours share.
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

/// About the bytes of a page's head.
const PAGE_HEAD: usize = 32;

/// A column chunk that is being encoded.
pub(super) struct Chunk {
    column: ColumnDescPtr,
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

/// What a thread makes pages with, one after the other, of all columns: so it stays in the cache. The tables of a compressor
/// are some hundred KiB.
struct Workbench {
    zstd: zstd::bulk::Compressor<'static>,
    /// Memory for a page.
    page: Vec<u8>,
    compressed: Vec<u8>,
    /// The page before, and what it was compressed to. Columns of the same indexes (the code and the name of an event, the
    /// number and the name of a system call) have the same pages one after the other: one of the two is compressed.
    before: Vec<u8>,
    before_compressed: Bytes,
}

impl Workbench {
    fn new() -> io::Result<Workbench> {
        let zstd = zstd::bulk::Compressor::new(level().compression_level())?;
        let (page, compressed, before, before_compressed) = Default::default();
        Ok(Workbench { zstd, page, compressed, before, before_compressed })
    }

    /// Compresses a page, whose memory the next one gets.
    fn compress_page(&mut self, page: Vec<u8>) -> io::Result<Bytes> {
        if page == self.before {
            self.page = page;
        } else {
            self.before_compressed = self.compress(&page)?;
            self.page = mem::replace(&mut self.before, page);
        }
        Ok(self.before_compressed.clone())
    }

    fn compress(&mut self, page: &[u8]) -> io::Result<Bytes> {
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(page.len()));
        self.zstd.compress_to_buffer(page, &mut self.compressed)?;
        Ok(Bytes::copy_from_slice(&self.compressed))
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

    /// A page begins with its levels.
    pub(super) fn begin(&self, levels: &Levels) -> Result<Vec<u8>, ParquetError> {
        let mut page = with_workbench(|bench| Ok(mem::take(&mut bench.page)))?;
        page.clear();
        levels.write(&self.column, &mut page);
        Ok(page)
    }

    /// Adds a page of some rows. `values` are those with a level, also those that are not there.
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
        let uncompressed_len = page.len();
        let buf = with_workbench(|bench| bench.compress_page(page))?;
        let compressed = Page::DataPage {
            buf,
            num_values: values as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.push((CompressedPage::new(compressed, uncompressed_len), rows as u64));
        Ok(())
    }

    /// Puts the dictionary in front.
    pub(super) fn close(self, ending: Ending) -> Result<EncodedChunk, ParquetError> {
        let data: usize = self.pages.iter().map(|(page, _)| page.compressed_size() + PAGE_HEAD).sum();
        let dictionary = ending.dictionary.as_ref().map_or(0, |(values, _)| values.len());
        let mut bytes = TrackedWrite::new(Vec::with_capacity(data + dictionary));
        let mut pages = SerializedPageWriter::new(&mut bytes);
        let (mut compressed, mut uncompressed, mut data_offset) = (0, 0, 0);
        if let Some((values, len)) = &ending.dictionary {
            let page = Page::DictionaryPage {
                buf: with_workbench(|bench| bench.compress(values))?,
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
