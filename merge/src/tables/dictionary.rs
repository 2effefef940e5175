//! One chunk of a column of few different values, by dictionary: pages in the format of Parquet.
//!
//! Arrow's writer looks every value up by its bytes, a hash and a comparison each. Here the values are known by their
//! places in a list to begin with, so a page is made by packing numbers. On `events` this takes four columns out of
//! the hashing (see ARCHITECTURE.md for what that gained).

use std::sync::Arc;

use parquet::{basic::Encoding, errors::ParquetError, schema::types::ColumnDescPtr};

use super::{
    chunk::{Chunk, EncodedChunk, Levels},
    hybrid,
};

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
    chunk: Chunk,
    /// The place in the dictionary of each key that has one; [`NONE`] for the others.
    places: Vec<u32>,
    dictionary: Vec<u8>,
    dictionary_len: u32,
    indices: Vec<u32>,
    levels: Levels,
}

impl DictionaryChunk {
    pub(super) fn new(column: ColumnDescPtr) -> Result<DictionaryChunk, ParquetError> {
        Ok(DictionaryChunk {
            chunk: Chunk::new(column)?,
            places: Vec::new(),
            dictionary: Vec::new(),
            dictionary_len: 0,
            indices: Vec::new(),
            levels: Levels::default(),
        })
    }

    /// Encodes some rows as a page. All keys are of the same list, which may have grown since the page before.
    pub(super) fn page(&mut self, rows: &Keys) -> Result<(), ParquetError> {
        self.place(rows);
        self.levels.clear();
        self.levels.definition.extend(rows.keys.iter().map(|key| u32::from(*key != NONE)));
        let mut page = self.chunk.begin(&self.levels);
        let width = hybrid::width_of(self.dictionary_len.saturating_sub(1));
        page.push(width as u8);
        hybrid::encode(&self.indices, width, &mut page);
        self.chunk.page(&page, rows.keys.len(), rows.keys.len(), Encoding::RLE_DICTIONARY)
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

    pub(super) fn close(self) -> Result<EncodedChunk, ParquetError> {
        self.chunk.close(&self.dictionary, self.dictionary_len, None)
    }
}
