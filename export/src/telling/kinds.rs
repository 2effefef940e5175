//! Which declaration an event has: by its side, its number and its name.

use std::collections::HashMap;

use sigmund_model::Level;
use sigmund_query::EventRow;

use crate::timeline::Cast;

/// Numbers below are small.
const SMALL: usize = 1 << 12;

/// The declared events of a cast, by what a row says of its own.
pub(super) struct Kinds<'a> {
    cast: &'a Cast,
    /// By side and number, where that is small and one event has it: a look at a table, not into a map.
    small: [Vec<Option<u32>>; 2],
    /// Several events may have one number: those of two programs.
    by_code: HashMap<(Option<Level>, Option<i64>), Vec<u32>, foldhash::fast::FixedState>,
}

impl Kinds<'_> {
    pub(super) fn of(cast: &Cast) -> Kinds<'_> {
        let mut kinds =
            Kinds { cast, small: [vec![None; SMALL], vec![None; SMALL]], by_code: HashMap::default() };
        for (index, ty) in cast.event_types.iter().enumerate() {
            let code = (Some(ty.level), ty.code.map(i64::from));
            kinds.by_code.entry(code).or_default().push(index as u32);
        }
        for ((level, code), same_code) in &kinds.by_code {
            if let (Some(level), Some(code), [only]) = (level, code.and_then(small), same_code.as_slice()) {
                kinds.small[usize::from(*level == Level::User)][code] = Some(*only);
            }
        }
        kinds
    }

    /// Index of a row's declaration.
    pub(super) fn of_row(&self, row: &EventRow<'_>) -> Option<usize> {
        let quick = row.code.and_then(small).zip(row.level);
        if let Some(index) =
            quick.and_then(|(code, level)| self.small[usize::from(level == Level::User)][code])
            && self.cast.event_types[index as usize].name == row.name
        {
            return Some(index as usize);
        }
        let same_code = self.by_code.get(&(row.level, row.code))?;
        let index =
            same_code.iter().find(|index| self.cast.event_types[**index as usize].name == row.name)?;
        Some(*index as usize)
    }
}

fn small(code: i64) -> Option<usize> {
    usize::try_from(code).ok().filter(|code| *code < SMALL)
}
