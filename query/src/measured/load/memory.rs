//! A limit on the memory of a measure: that of the session.

use sigmund_measures::{Sliced, Spill};
use sigmund_sql::SuperTrace;

use super::SliceSize;
use crate::Error;

/// How much the process may grow while a measure is computed. In a server, the growth by all of its queries counts.
#[derive(Clone, Copy, Debug)]
pub(in crate::measured) struct Memory<'m> {
    measure: &'m str,
    /// In bytes; `None` if there is none.
    limit: Option<usize>,
    before: usize,
    /// Where rows of the answer go if memory is short.
    spill: Option<&'m Spill>,
}

/// The rows of a slice may take the limit divided by this. At any time, some rows are being read, some are
/// made into a history, and some are being added to the measure.
const SLICES: usize = 8;

/// Without a limit, rows of an answer go to a temporary file as with this one.
const WITHOUT_LIMIT: usize = 1 << 30;

/// The memory of one row of a slice, in bytes.
const ROW: usize = 100;

impl<'m> Memory<'m> {
    /// Begins to measure the growth now.
    pub(in crate::measured) fn of(trace: &SuperTrace, measure: &'m str) -> Memory<'m> {
        Memory { measure, limit: trace.memory(), before: anonymous(), spill: None }
    }

    /// With a place for rows of the answer.
    pub(in crate::measured) fn spilling(self, spill: &'m Spill) -> Memory<'m> {
        Memory { spill: Some(spill), ..self }
    }

    /// Limits the size of slices so that there is memory left for the answer. If all has to be one slice, it remains
    /// one.
    pub(in crate::measured) fn slices(&self, size: SliceSize) -> SliceSize {
        if size.rows == SliceSize::WHOLE.rows {
            return size;
        }
        let rows = self.limit.map_or(usize::MAX, |limit| (limit / (SLICES * ROW)).max(1));
        SliceSize { rows: size.rows.min(rows), ..size }
    }

    /// By how much the process has grown.
    fn grown(&self) -> usize {
        anonymous().saturating_sub(self.before)
    }

    /// Moves rows of the answer out of memory, if they are complete and half of the limit is in use: what is freed serves the next
    /// slices.
    ///
    /// # Errors
    /// When they cannot be written, and there is a limit.
    pub(in crate::measured) fn make_room(&self, measure: &mut dyn Sliced) -> Result<(), Error> {
        let is_short = || self.grown() > self.limit.unwrap_or(WITHOUT_LIMIT) / 2;
        let Some(spill) = self.spill.filter(|_| is_short()) else { return Ok(()) };
        match measure.spill(spill) {
            Err(error) if self.limit.is_some() => Err(Error::of_spill(self.measure, error)),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// When the process has grown by more than the limit.
    pub(in crate::measured) fn check(&self) -> Result<(), Error> {
        let Some(limit) = self.limit else { return Ok(()) };
        let grown = self.grown();
        if grown <= limit {
            return Ok(());
        }
        Err(sigmund_sql::Error::beyond_memory(
            self.measure,
            limit,
            grown,
            "a shorter window (--from, --to) or fewer rows (--by name) need less; in a server all questions count",
        )
        .into())
    }
}

/// The anonymous memory of this process in bytes: resident memory that is not part of a file. 0 if it is unknown.
fn anonymous() -> usize {
    const PAGE: usize = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<usize> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match pages[..] {
        [_, resident, shared, ..] => resident.saturating_sub(shared) * PAGE,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_allocates_and_touches_is_its_memory() {
        let before = anonymous();
        assert!(before > 1 << 16, "{before}");
        // Other tests of this process take and free memory, too, but not so much.
        let block = std::hint::black_box(vec![1_u8; 256 << 20]);
        let after = anonymous();
        assert!(after > before + (128 << 20), "{before}, then {after}");
        drop(block);
    }

    #[test]
    fn slices_are_smaller_where_there_is_little_memory() {
        let of = |limit| {
            Memory { measure: "states", limit, before: 0, spill: None }.slices(SliceSize::default()).rows
        };
        assert_eq!(of(None), SliceSize::default().rows);
        assert_eq!(of(Some(1 << 30)), SliceSize::default().rows);
        assert_eq!(of(Some(80_000)), 100);
        assert_eq!(of(Some(1)), 1);
        let whole =
            Memory { measure: "locks", limit: Some(80_000), before: 0, spill: None }.slices(SliceSize::WHOLE);
        assert_eq!(whole.rows, SliceSize::WHOLE.rows);
    }
}
