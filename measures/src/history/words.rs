//! Words that occur often, each kept once.

use crate::map::Map;

/// A word of a [`Words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(u32);

impl Word {
    /// Its place among the words of its history: numbers from 0 on without holes.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

/// The words of a history: names of system calls, interrupts, spans.
#[derive(Clone, Debug, Default)]
pub struct Words {
    texts: Vec<String>,
    places: Map<String, Word>,
}

impl Words {
    /// The word for a text.
    pub fn intern(&mut self, text: &str) -> Word {
        if let Some(word) = self.places.get(text) {
            return *word;
        }
        let word = Word(self.texts.len() as u32);
        self.texts.push(text.to_string());
        self.places.insert(text.to_string(), word);
        word
    }

    /// The word for a text, if it occurs.
    pub fn get(&self, text: &str) -> Option<Word> {
        self.places.get(text).copied()
    }

    /// The text of a word.
    pub fn text(&self, word: Word) -> &str {
        self.texts.get(word.0 as usize).map_or("", String::as_str)
    }

    /// How many words there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// All words.
    pub fn iter(&self) -> impl Iterator<Item = (Word, &str)> {
        self.texts.iter().enumerate().map(|(place, text)| (Word(place as u32), text.as_str()))
    }
}
