//! Finds the declaration of an event: its fields have the names and types of the parameters.

use std::collections::HashMap;

use sigmund_model::EventType;
use sigmund_sql::DeclaredEvent;

use super::EventRow;

/// The declared events, by name.
pub(crate) struct Declarations<'t> {
    by_name: HashMap<&'t str, Vec<&'t EventType>>,
}

impl<'t> Declarations<'t> {
    pub(crate) fn new(declared: &'t [DeclaredEvent]) -> Declarations<'t> {
        let mut by_name: HashMap<&str, Vec<&EventType>> = HashMap::new();
        for event in declared {
            by_name.entry(&event.ty.name).or_default().push(&event.ty);
        }
        Declarations { by_name }
    }

    /// The declaration with this event's name, level and code; the first, if two sources share all three.
    pub(crate) fn of(&self, row: &EventRow<'_>) -> Option<&'t EventType> {
        let types = self.by_name.get(row.name)?;
        let same = |ty: &&&EventType| Some(ty.level) == row.level && ty.code.map(i64::from) == row.code;
        types.iter().find(same).copied()
    }
}
