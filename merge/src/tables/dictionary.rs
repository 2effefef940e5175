//! One chunk of a column of few different values, by dictionary: pages in the format of Parquet.
//!
//! Arrow's writer looks every value up by its bytes, a hash and a comparison each. Here the values are known by their
//! places in a list to begin with, so a page is made by packing numbers. On `events` this takes four columns out of
//! the hashing (see ARCHITECTURE.md for what that gained).
//!
//! ```text
//!   dictionary page  | value | value | …        those that occur, in the order of their first row
//!   data page        | u32 length, levels | width u8 | places in the dictionary |      levels only if NULL is allowed
//!   data page        | …
//! ```

use std::sync::Arc;

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
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

use super::hybrid;

/// The key of a row without a value.
pub(super) const NONE: u32 = u32::MAX;

/// A list of values, as they stand in a dictionary page: numbers as their bytes, texts with their length in front.
#[derive(Debug, Default)]
pub(super) struct Values {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Values {
    pub(super) fn push_text(&mut self, text: &str) {
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.push_bytes(text.as_bytes());
    }

    pub(super) fn push_number(&mut self, number: i64) {
        self.push_bytes(&number.to_le_bytes());
    }

    pub(super) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Arc<Values> {
        let mut values = Values::default();
        texts.into_iter().for_each(|text| values.push_text(text));
        Arc::new(values)
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, key: u32) -> &[u8] {
        let key = key as usize;
        let from = if key == 0 { 0 } else { self.ends[key - 1] };
        &self.bytes[from..self.ends[key]]
    }
}

/// The values of some rows: for each its key, which is a place in a list.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) keys: Vec<u32>,
    pub(super) values: Arc<Values>,
}

/// A column chunk that is being encoded.
pub(super) struct DictionaryChunk {
    column: ColumnDescPtr,
    zstd: zstd::bulk::Compressor<'static>,
    /// The place in the dictionary of each key that has one; [`NONE`] for the others.
    places: Vec<u32>,
    dictionary: Vec<u8>,
    dictionary_len: u32,
    pages: Vec<CompressedPage>,
    indices: Vec<u32>,
    levels: Vec<u32>,
    rows: u64,
}

/// An encoded column chunk, and what its file has to say about it.
pub(super) struct EncodedChunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

impl DictionaryChunk {
    /// The codec of its pages, which the others of the file need not have.
    fn codec() -> Compression {
        Compression::ZSTD(ZstdLevel::default())
    }

    pub(super) fn new(column: ColumnDescPtr) -> Result<DictionaryChunk, ParquetError> {
        Ok(DictionaryChunk {
            column,
            zstd: zstd::bulk::Compressor::new(ZstdLevel::default().compression_level())?,
            places: Vec::new(),
            dictionary: Vec::new(),
            dictionary_len: 0,
            pages: Vec::new(),
            indices: Vec::new(),
            levels: Vec::new(),
            rows: 0,
        })
    }

    /// Encodes some rows as a page. All keys are of the same list, which may have grown since the page before.
    pub(super) fn page(&mut self, rows: &Keys) -> Result<(), ParquetError> {
        self.place(rows);
        let mut page = Vec::with_capacity(rows.keys.len());
        if self.column.max_def_level() > 0 {
            self.levels.clear();
            self.levels.extend(rows.keys.iter().map(|key| u32::from(*key != NONE)));
            page.extend([0; 4]);
            hybrid::encode(&self.levels, 1, &mut page);
            let length = page.len() as u32 - 4;
            page[..4].copy_from_slice(&length.to_le_bytes());
        }
        let width = hybrid::width_of(self.dictionary_len.saturating_sub(1));
        page.push(width as u8);
        hybrid::encode(&self.indices, width, &mut page);
        let uncompressed = page.len();
        let page = Page::DataPage {
            buf: self.zstd.compress(&page)?.into(),
            num_values: rows.keys.len() as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.push(CompressedPage::new(page, uncompressed));
        self.rows += rows.keys.len() as u64;
        Ok(())
    }

    /// Finds the places of the keys in the dictionary; new ones get the next place.
    fn place(&mut self, rows: &Keys) {
        self.places.resize(rows.values.ends.len().max(self.places.len()), NONE);
        self.indices.clear();
        for key in rows.keys.iter().filter(|key| **key != NONE) {
            let place = &mut self.places[*key as usize];
            if *place == NONE {
                *place = self.dictionary_len;
                self.dictionary_len += 1;
                self.dictionary.extend(rows.values.get(*key));
            }
            self.indices.push(*place);
        }
    }

    /// Puts the dictionary in front.
    pub(super) fn close(mut self) -> Result<EncodedChunk, ParquetError> {
        let uncompressed = self.dictionary.len();
        let page = Page::DictionaryPage {
            buf: self.zstd.compress(&self.dictionary)?.into(),
            num_values: self.dictionary_len,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let mut bytes = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut bytes);
        let dictionary = pages.write_page(CompressedPage::new(page, uncompressed))?;
        let (mut compressed, mut uncompressed) = (dictionary.compressed_size, dictionary.uncompressed_size);
        let data_offset = dictionary.bytes_written as i64;
        let mut offsets = OffsetIndexBuilder::new();
        for page in self.pages {
            let written = pages.write_page(page)?;
            compressed += written.compressed_size;
            uncompressed += written.uncompressed_size;
            offsets.append_row_count(i64::from(written.num_values));
            offsets.append_offset_and_size(written.offset as i64, written.compressed_size as i32);
        }
        let encodings = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
        let metadata = ColumnChunkMetaData::builder(self.column)
            .set_compression(DictionaryChunk::codec())
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(compressed as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_num_values(self.rows as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(data_offset)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(offsets.build()),
        };
        Ok(EncodedChunk { bytes: bytes.into_inner()?.into(), close })
    }
}
