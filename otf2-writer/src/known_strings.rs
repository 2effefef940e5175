//! A cache of texts that are already defined, with their ids.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::StringId;

/// The cache is cleared when its entries exceed this size, in bytes.
const MAX_LEN: usize = 16 << 20;
/// Memory of an entry without its text, in bytes.
const ENTRY_LEN: usize = 48;

#[derive(Debug, Default)]
pub(crate) struct KnownStrings {
    ids: HashMap<Box<str>, StringId, RandomState>,
    /// Memory of all entries, in bytes.
    len: usize,
}

impl KnownStrings {
    #[inline]
    pub(crate) fn get(&self, text: &str) -> Option<StringId> {
        self.ids.get(text).copied()
    }

    pub(crate) fn insert(&mut self, text: &str, id: StringId) {
        self.len += text.len() + ENTRY_LEN;
        if self.len > MAX_LEN {
            self.ids.clear();
            self.len = text.len() + ENTRY_LEN;
        }
        self.ids.insert(text.into(), id);
    }
}
