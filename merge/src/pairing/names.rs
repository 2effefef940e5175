//! The names of intervals, each stored once.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// A stored name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameId(u32);

impl NameId {
    /// Its position among all names.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Maximum number of stored names; intervals with further names have no name.
const MOST_NAMES: usize = 1 << 20;

/// All stored names.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, NameId, RandomState>,
}

impl Names {
    pub(super) fn id(&mut self, name: &str) -> Option<NameId> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        if self.names.len() >= MOST_NAMES {
            return None;
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        Some(id)
    }

    /// All names, by their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    pub(super) fn of(&self, id: NameId) -> &str {
        &self.names[id.0 as usize]
    }
}
