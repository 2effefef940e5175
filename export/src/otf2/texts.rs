//! Which texts have a number already.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::StringId;

/// Forgets all texts when they are longer than this together.
const LONGEST: usize = 16 << 20;
/// What a text costs beside its bytes.
const ENTRY: usize = 48;

/// Texts and their numbers.
#[derive(Debug, Default)]
pub(super) struct Texts {
    ids: HashMap<Box<str>, StringId, RandomState>,
    len: usize,
}

impl Texts {
    #[inline]
    pub(super) fn get(&self, text: &str) -> Option<StringId> {
        self.ids.get(text).copied()
    }

    pub(super) fn insert(&mut self, text: &str, id: StringId) {
        self.len += text.len() + ENTRY;
        if self.len > LONGEST {
            self.ids.clear();
            self.len = text.len() + ENTRY;
        }
        self.ids.insert(text.into(), id);
    }
}
