//! One chunk of a column with few different values, encoded with a dictionary: pages in the format of Parquet.
//!
//! Arrow's writer looks up every value by its bytes, with a hash and a comparison each. Here each value already comes
//! as an index into a list, so a page is made by packing numbers. On `events` this avoids hashing for four columns
//! (ARCHITECTURE.md has the gain).

use std::sync::Arc;

use parquet::{basic::Encoding, errors::ParquetError, schema::types::ColumnDescPtr};

use super::{
    chunk::{Chunk, EncodedChunk, Ending},
    hybrid,
    levels::Levels,
    value_index::put_text,
};

/// The key of a row without a value, and the dictionary index for it.
pub(crate) const NONE: u32 = u32::MAX;
/// The dictionary index of a value that has not occurred yet.
const NEW: u32 = NONE - 1;

/// A list of values, encoded as in a dictionary page: numbers as their bytes, texts after their length.
#[derive(Debug, Default)]
pub(crate) struct Values {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The value of each key. Several keys may share a value; [`NONE`] for a key without one.
    of_keys: Vec<u32>,
}

impl Values {
    /// Adds a text for the next key.
    pub(crate) fn push_text(&mut self, text: &str) {
        put_text(text.as_bytes(), &mut self.bytes);
        self.push_end();
    }

    /// Adds a number for the next key.
    pub(crate) fn push_number(&mut self, number: i64) {
        self.bytes.extend(number.to_le_bytes());
        self.push_end();
    }

    /// Gives the next key the value of an earlier key, or none.
    pub(crate) fn push_as(&mut self, key: Option<usize>) {
        self.of_keys.push(key.map_or(NONE, |key| self.of_keys[key]));
    }

    pub(crate) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Arc<Values> {
        let mut values = Values::default();
        texts.into_iter().for_each(|text| values.push_text(text));
        Arc::new(values)
    }

    fn push_end(&mut self) {
        self.of_keys.push(self.ends.len() as u32);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, value: usize) -> &[u8] {
        let from = if value == 0 { 0 } else { self.ends[value - 1] };
        &self.bytes[from..self.ends[value]]
    }
}

/// The values of some rows: for each row its key, which is an index into a list. Columns with equal keys share them.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) keys: Arc<Vec<u32>>,
    pub(crate) values: Arc<Values>,
}

/// A column chunk that is being encoded.
pub(crate) struct DictionaryChunk {
    chunk: Chunk,
    places: KeyPlaces,
    indices: Vec<u32>,
}

/// The dictionary of the chunk.
#[derive(Default)]
struct KeyPlaces {
    /// The dictionary index of each key that has occurred. [`NONE`] for a key without a value, [`NEW`] for all other
    /// keys.
    of_keys: Vec<u32>,
    /// The same for values.
    of_values: Vec<u32>,
    dictionary: Vec<u8>,
    len: u32,
}

impl DictionaryChunk {
    pub(crate) fn new(column: ColumnDescPtr) -> Result<DictionaryChunk, ParquetError> {
        Ok(DictionaryChunk { chunk: Chunk::new(column), places: KeyPlaces::default(), indices: Vec::new() })
    }

    /// Encodes some rows as a page. All keys refer to the same list, which may have grown since the previous page.
    pub(crate) fn page(&mut self, rows: &Keys) -> Result<(), ParquetError> {
        let count = rows.keys.len();
        let places = &mut self.places;
        places.make_room(&rows.values);
        self.indices.clear();
        self.indices.extend(rows.keys.iter().map(|key| places.place(*key, &rows.values)));
        let levels = self.take_out_none();
        let mut page = self.chunk.begin(&levels)?;
        let width = hybrid::width_of(self.places.len.saturating_sub(1));
        page.push(width as u8);
        hybrid::encode(&self.indices, width, &mut page);
        self.chunk.page(page, count, count, Encoding::RLE_DICTIONARY)
    }

    /// Keeps only the rows with a value, and returns which these are.
    fn take_out_none(&mut self) -> Levels {
        if !self.indices.contains(&NONE) {
            return Levels::all(self.indices.len());
        }
        let mut levels = Levels::default();
        self.indices.iter().for_each(|place| levels.push(*place != NONE));
        self.indices.retain(|place| *place != NONE);
        levels
    }

    pub(crate) fn close(self) -> Result<EncodedChunk, ParquetError> {
        let dictionary = Some((self.places.dictionary, self.places.len as usize));
        self.chunk.close(Ending { dictionary, ..Ending::default() })
    }
}

impl KeyPlaces {
    fn make_room(&mut self, values: &Values) {
        self.of_keys.resize(values.of_keys.len().max(self.of_keys.len()), NEW);
        self.of_values.resize(values.ends.len().max(self.of_values.len()), NEW);
    }

    #[inline]
    fn place(&mut self, key: u32, values: &Values) -> u32 {
        if key == NONE {
            return NONE;
        }
        let place = self.of_keys[key as usize];
        if place == NEW { self.place_new(key as usize, values) } else { place }
    }

    fn place_new(&mut self, key: usize, values: &Values) -> u32 {
        let value = values.of_keys[key];
        if value == NONE {
            self.of_keys[key] = NONE;
            return NONE;
        }
        let place = &mut self.of_values[value as usize];
        if *place == NEW {
            *place = self.len;
            self.len += 1;
            self.dictionary.extend(values.get(value as usize));
        }
        self.of_keys[key] = *place;
        *place
    }
}
