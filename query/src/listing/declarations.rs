//! Finds the declaration of an event: its fields have the names and types of the parameters.

use std::{cell::Cell, collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use sigmund_model::{EventType, Level};
use sigmund_sql::DeclaredEvent;

use super::EventRow;

/// Events that were found last; a power of two.
const RECENT: usize = 32;

/// The declared events, by name, level and code.
pub(super) type Types<'t> = HashMap<(&'t str, Level, Option<i64>), &'t EventType, RandomState>;

/// The declared events, for one thread.
pub(crate) struct Declarations<'t> {
    types: Arc<Types<'t>>,
    /// Most rows are of few events, and these need no hash.
    recent: [Cell<Option<&'t EventType>>; RECENT],
}

impl<'t> Declarations<'t> {
    pub(crate) fn new(declared: &'t [DeclaredEvent]) -> Declarations<'t> {
        let mut types = Types::default();
        for DeclaredEvent { ty, .. } in declared {
            types.entry((ty.name.as_str(), ty.level, ty.code.map(i64::from))).or_insert(ty);
        }
        Declarations::sharing(Arc::new(types))
    }

    /// The same for another thread.
    pub(super) fn sharing(types: Arc<Types<'t>>) -> Declarations<'t> {
        Declarations { types, recent: std::array::from_fn(|_| Cell::new(None)) }
    }

    /// What can be shared by threads.
    pub(super) fn types(&self) -> Arc<Types<'t>> {
        Arc::clone(&self.types)
    }

    /// The declaration with this event's name, level and code; the first, if two sources share all three.
    pub(crate) fn of(&self, row: &EventRow<'_>) -> Option<&'t EventType> {
        let level = row.level?;
        let last = row.name.as_bytes().last().copied().unwrap_or_default();
        let place = (row.name.len() * 5 + usize::from(last)).wrapping_add(row.code.unwrap_or(0) as usize);
        let recent = &self.recent[place % RECENT];
        let is_it =
            |ty: &&EventType| ty.level == level && ty.code.map(i64::from) == row.code && ty.name == row.name;
        if let Some(found) = recent.get().filter(is_it) {
            return Some(found);
        }
        let found = self.types.get(&(row.name, level, row.code)).copied();
        recent.set(found);
        found
    }
}
