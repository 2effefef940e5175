//! The names of user threads. There may be millions of threads, with few names or with many. So each text is stored
//! once, and all texts are concatenated.

use std::{hash::BuildHasher, num::NonZero};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// The number of a text in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(NonZero<u32>);

impl NameId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Different texts, by number.
#[derive(Clone, Debug, Default)]
pub struct Names {
    bytes: String,
    /// The end of each text in `bytes`.
    ends: Vec<usize>,
    /// The indices of the texts, by their hashes.
    by_hash: HashTable<u32>,
    hasher: RandomState,
}

impl Names {
    /// The number of a text. A new text is added.
    ///
    /// # Panics
    /// If there are already 2^32 - 1 different texts.
    pub fn add(&mut self, text: &str) -> NameId {
        let Names { bytes, ends, by_hash, hasher } = self;
        let hash = hasher.hash_one(text);
        let known = by_hash.find(hash, |index| text_at(bytes, ends, *index as usize) == text).copied();
        let index = known.unwrap_or_else(|| {
            let index = u32::try_from(ends.len()).expect("fewer than 2^32 user threads");
            bytes.push_str(text);
            ends.push(bytes.len());
            let hash_of = |index: &u32| hasher.hash_one(text_at(bytes, ends, *index as usize));
            by_hash.insert_unique(hash, index, hash_of);
            index
        });
        NameId(NonZero::<u32>::MIN.checked_add(index).expect("fewer than 2^32 - 1 names"))
    }

    /// Makes room for so many different texts. A table that grows finds its texts again one by one, all over the memory: with
    /// two million names, 5 % of the CPU time of an export to Pajé.
    pub fn reserve(&mut self, texts: usize) {
        let Names { bytes, ends, by_hash, hasher } = self;
        by_hash.reserve(texts, |index| hasher.hash_one(text_at(bytes, ends, *index as usize)));
    }

    /// The text with this number.
    ///
    /// # Panics
    /// If the number belongs to other names, and is greater than the number of these texts.
    pub fn text(&self, name: NameId) -> &str {
        text_at(&self.bytes, &self.ends, name.index())
    }

    /// Frees the memory that is only needed for adding names. If one of these texts is added again later, it is stored
    /// a second time.
    pub fn shrink_to_fit(&mut self) {
        self.by_hash = HashTable::new();
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

fn text_at<'b>(bytes: &'b str, ends: &[usize], index: usize) -> &'b str {
    let begin = index.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[begin..ends[index]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_stored_once() {
        let mut names = Names::default();
        let numbers = ["request", "", "request", "ü", "", "request"].map(|text| names.add(text));
        let [request, empty, ..] = numbers;
        assert_eq!([numbers[2], numbers[5], numbers[4]], [request, request, empty]);
        assert_eq!([request, empty, numbers[3]].map(|name| names.text(name)), ["request", "", "ü"]);
        assert_eq!(names.bytes, "requestü");
    }

    #[test]
    fn an_optional_number_takes_four_bytes() {
        assert_eq!(size_of::<Option<NameId>>(), 4);
    }

    #[test]
    fn many_texts_are_found_again() {
        let mut names = Names::default();
        let numbers: Vec<NameId> = (0..10_000).map(|n| names.add(&format!("work/{n}"))).collect();
        assert!((0..10_000).all(|n| names.add(&format!("work/{n}")) == numbers[n]));
        names.shrink_to_fit();
        assert!((0..10_000).all(|n| names.text(numbers[n]) == format!("work/{n}")));
    }
}
