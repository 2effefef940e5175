//! The ids of texts that are already defined.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::StringId;

/// When all texts together are longer than this, in bytes, they are forgotten.
const LONGEST: usize = 16 << 20;
/// Memory of an entry beside its text, in bytes.
const ENTRY: usize = 48;

/// Texts and their ids.
#[derive(Debug, Default)]
pub(crate) struct KnownStrings {
    ids: HashMap<Box<str>, StringId, RandomState>,
    len: usize,
}

impl KnownStrings {
    #[inline]
    pub(crate) fn get(&self, text: &str) -> Option<StringId> {
        self.ids.get(text).copied()
    }

    pub(crate) fn insert(&mut self, text: &str, id: StringId) {
        self.len += text.len() + ENTRY;
        if self.len > LONGEST {
            self.ids.clear();
            self.len = text.len() + ENTRY;
        }
        self.ids.insert(text.into(), id);
    }
}
