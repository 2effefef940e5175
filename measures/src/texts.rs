//! Many texts in little memory, by numbers.

use std::hash::BuildHasher;

use crate::map::Map;

/// Texts one after the other, each mostly once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: String,
    /// Where each ends.
    ends: Vec<usize>,
    /// The last text of each hash: one of several with the same hash may be there more than once.
    by_hash: Map<u64, u32>,
}

impl Texts {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of a text; `u32::MAX` for none.
    pub(crate) fn number_of(&mut self, text: Option<&str>) -> u32 {
        text.map_or(u32::MAX, |text| self.number(text))
    }

    /// The number of a text.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        let hash = self.by_hash.hasher().hash_one(text);
        if let Some(number) = self.by_hash.get(&hash)
            && self.text(*number) == Some(text)
        {
            return *number;
        }
        let number = self.ends.len() as u32;
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.by_hash.insert(hash, number);
        number
    }

    /// The text of a number; `None` if there is none.
    pub(crate) fn text(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[from..end])
    }

    /// No more texts come, or few.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.by_hash = Map::default();
    }
}
