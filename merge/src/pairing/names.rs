//! Names of intervals, kept once.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// A name that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameId(u32);

/// Distinct names that are kept; a trace with more has the others' intervals without a name.
const MOST_NAMES: usize = 1 << 20;

/// All names that intervals have had.
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

    pub(super) fn of(&self, id: NameId) -> &str {
        &self.names[id.0 as usize]
    }
}
