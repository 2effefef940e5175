//! The declaration of an event, by its level, number and name.

use std::collections::HashMap;

use sigmund_model::Level;
use sigmund_query::EventRow;

use crate::timeline::Actors;

/// Event codes below this number are found by index, without a map.
const INDEXED_CODES: usize = 1 << 12;

/// The declared events, by level, number and name.
pub(super) struct Declarations<'a> {
    actors: &'a Actors,
    /// The first event of each code below [`INDEXED_CODES`], by level.
    by_code: [Vec<Option<u32>>; 2],
    /// The first event of each name. Events of two programs may have the same number.
    by_name: HashMap<(Level, Option<i64>, &'a str), u32, foldhash::fast::FixedState>,
}

impl Declarations<'_> {
    pub(super) fn of(actors: &Actors) -> Declarations<'_> {
        let mut declarations = Declarations {
            actors,
            by_code: [vec![None; INDEXED_CODES], vec![None; INDEXED_CODES]],
            by_name: HashMap::default(),
        };
        for (index, ty) in actors.event_types.iter().enumerate() {
            let (index, code) = (index as u32, ty.code.map(i64::from));
            declarations.by_name.entry((ty.level, code, &ty.name)).or_insert(index);
            if let Some(code) = code.and_then(indexed) {
                // `of_row` compares the name; further events of this code are in the map.
                declarations.by_code[usize::from(ty.level == Level::User)][code].get_or_insert(index);
            }
        }
        declarations
    }

    /// Index of the declaration of a row.
    pub(super) fn of_row(&self, row: &EventRow<'_>) -> Option<usize> {
        let quick = row.code.and_then(indexed).zip(row.level);
        if let Some(index) =
            quick.and_then(|(code, level)| self.by_code[usize::from(level == Level::User)][code])
            && self.actors.event_types[index as usize].name == row.name
        {
            return Some(index as usize);
        }
        Some(*self.by_name.get(&(row.level?, row.code, row.name))? as usize)
    }
}

fn indexed(code: i64) -> Option<usize> {
    usize::try_from(code).ok().filter(|code| *code < INDEXED_CODES)
}
