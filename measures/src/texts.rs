//! Many texts in little memory, each with a number.

use std::{hash::BuildHasher, ops::Range};

use crate::map::Map;

/// Texts, stored one after the other. Most are stored only once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: String,
    /// The end of each text.
    ends: Vec<usize>,
    /// The last text with each hash. If several texts have the same hash, they may be stored more than once.
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

    /// The text with this number; `None` if there is none.
    pub(crate) fn text(&self, number: u32) -> Option<&str> {
        self.bytes.get(self.place(number)?)
    }

    /// Where the bytes of a text are.
    pub(crate) fn place(&self, number: u32) -> Option<Range<usize>> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        Some(number.checked_sub(1).map_or(0, |before| self.ends[before])..end)
    }

    /// The bytes of all texts.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_bytes()
    }

    /// Forgets the bytes, but not where they were. From now on, there is no text.
    pub(crate) fn forget_bytes(&mut self) {
        self.bytes = String::new();
    }

    /// To be called when no more texts, or few, will be added.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.by_hash = Map::default();
    }
}
