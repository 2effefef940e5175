//! Finds the declaration of an event: its fields have the names and types of the parameters.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{EventType, Level};
use sigmund_sql::DeclaredEvent;

use super::EventRow;

/// The declared events, by name, level and code.
pub(crate) struct Declarations<'t> {
    types: HashMap<(&'t str, Level, Option<i64>), &'t EventType, RandomState>,
}

impl<'t> Declarations<'t> {
    pub(crate) fn new(declared: &'t [DeclaredEvent]) -> Declarations<'t> {
        let mut types = HashMap::default();
        for DeclaredEvent { ty, .. } in declared {
            types.entry((ty.name.as_str(), ty.level, ty.code.map(i64::from))).or_insert(ty);
        }
        Declarations { types }
    }

    /// The declaration with this event's name, level and code; the first, if two sources share all three.
    pub(crate) fn of(&self, row: &EventRow<'_>) -> Option<&'t EventType> {
        self.types.get(&(row.name, row.level?, row.code)).copied()
    }
}
