//! Words that occur often, each kept once.

use std::sync::Arc;

use crate::map::Map;

/// A word of a [`Words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(u32);

impl Word {
    /// Its place among the words of its history. Places count from 0, without holes.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

/// The words of a history: names of system calls, interrupts, spans. Clones share them until one gets a new word.
#[derive(Clone, Debug, Default)]
pub struct Words(Arc<All>);

#[derive(Clone, Debug, Default)]
struct All {
    texts: Vec<String>,
    places: Map<String, Word>,
}

impl Words {
    /// The word for a text.
    pub fn intern(&mut self, text: &str) -> Word {
        if let Some(word) = self.get(text) {
            return word;
        }
        let All { texts, places } = Arc::make_mut(&mut self.0);
        let word = Word(texts.len() as u32);
        texts.push(text.to_string());
        places.insert(text.to_string(), word);
        word
    }

    /// The word for a text, if it occurs.
    pub fn get(&self, text: &str) -> Option<Word> {
        self.0.places.get(text).copied()
    }

    /// The text of a word.
    pub fn text(&self, word: Word) -> &str {
        self.0.texts.get(word.0 as usize).map_or("", String::as_str)
    }

    /// How many words there are.
    pub(crate) fn len(&self) -> usize {
        self.0.texts.len()
    }

    /// All words.
    pub fn iter(&self) -> impl Iterator<Item = (Word, &str)> {
        self.0.texts.iter().enumerate().map(|(place, text)| (Word(place as u32), text.as_str()))
    }
}
