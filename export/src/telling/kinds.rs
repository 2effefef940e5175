//! Which declaration an event has: by its side, its number and its name.

use std::collections::HashMap;

use sigmund_model::Level;
use sigmund_query::EventRow;

use crate::timeline::Cast;

/// The declared events of a cast, by what a row says of its own.
pub(super) struct Kinds<'a> {
    cast: &'a Cast,
    /// Several events may have one number: those of two programs.
    by_code: HashMap<(Option<Level>, Option<i64>), Vec<u32>, foldhash::fast::FixedState>,
}

impl Kinds<'_> {
    pub(super) fn of(cast: &Cast) -> Kinds<'_> {
        let mut kinds = Kinds { cast, by_code: HashMap::default() };
        for (index, ty) in cast.event_types.iter().enumerate() {
            let code = (Some(ty.level), ty.code.map(i64::from));
            kinds.by_code.entry(code).or_default().push(index as u32);
        }
        kinds
    }

    /// Index of a row's declaration.
    pub(super) fn of_row(&self, row: &EventRow<'_>) -> Option<usize> {
        let same_code = self.by_code.get(&(row.level, row.code))?;
        let index =
            same_code.iter().find(|index| self.cast.event_types[**index as usize].name == row.name)?;
        Some(*index as usize)
    }
}
