//! Finds the declaration of an event: its fields have the names and types of the parameters.

use std::{cell::Cell, collections::HashMap, ops::Deref, sync::Arc};

use foldhash::fast::RandomState;
use sigmund_model::{EventType, Level};
use sigmund_sql::DeclaredEvent;

use super::{EventRow, params};

/// The number of recently found events that are remembered; a power of two.
const RECENT: usize = 32;

/// A declared event, and what is printed before the value of each of its fields: `NAME=`, or nothing.
pub(crate) struct Declared<'t> {
    ty: &'t EventType,
    labels: Vec<String>,
}

impl<'t> Declared<'t> {
    fn new(ty: &'t EventType) -> Declared<'t> {
        Declared { ty, labels: ty.fields.iter().map(|field| params::label(&field.name)).collect() }
    }

    /// What is printed before the value of a field.
    pub(crate) fn label(&self, index: usize) -> &str {
        self.labels.get(index).map_or("", String::as_str)
    }
}

impl Deref for Declared<'_> {
    type Target = EventType;

    fn deref(&self) -> &EventType {
        self.ty
    }
}

/// The declared events, for all threads.
#[derive(Default)]
pub(super) struct Types<'t> {
    all: Vec<Declared<'t>>,
    /// Index by name, level and code.
    places: HashMap<(&'t str, Level, Option<i64>), u32, RandomState>,
}

/// The declared events, for one thread.
pub(crate) struct Declarations<'t> {
    types: Arc<Types<'t>>,
    /// Most rows have one of few events. These are found here without hashing.
    recent: [Cell<Option<u32>>; RECENT],
}

impl<'t> Declarations<'t> {
    pub(crate) fn new(declared: &'t [DeclaredEvent]) -> Declarations<'t> {
        let mut types = Types::default();
        for DeclaredEvent { ty, .. } in declared {
            let place = types.all.len() as u32;
            types.places.entry((ty.name.as_str(), ty.level, ty.code.map(i64::from))).or_insert_with(|| {
                types.all.push(Declared::new(ty));
                place
            });
        }
        Declarations::sharing(Arc::new(types))
    }

    /// A new value for another thread, with the same declared events.
    pub(super) fn sharing(types: Arc<Types<'t>>) -> Declarations<'t> {
        Declarations { types, recent: std::array::from_fn(|_| Cell::new(None)) }
    }

    /// The part that threads can share.
    pub(super) fn types(&self) -> Arc<Types<'t>> {
        Arc::clone(&self.types)
    }

    /// The declaration with this event's name, level and code. If two sources have the same three, the first.
    pub(crate) fn of(&self, row: &EventRow<'_>) -> Option<&Declared<'t>> {
        let level = row.level?;
        let last = row.name.as_bytes().last().copied().unwrap_or_default();
        let place = (row.name.len() * 5 + usize::from(last)).wrapping_add(row.code.unwrap_or(0) as usize);
        let recent = &self.recent[place % RECENT];
        let declared = |place: u32| &self.types.all[place as usize];
        let is_it = |ty: &&Declared<'_>| {
            ty.level == level && ty.code.map(i64::from) == row.code && ty.name == row.name
        };
        if let Some(found) = recent.get().map(declared).filter(is_it) {
            return Some(found);
        }
        let found = self.types.places.get(&(row.name, level, row.code)).copied();
        recent.set(found);
        found.map(declared)
    }
}
