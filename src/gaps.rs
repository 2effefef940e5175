//! Gaps in the time that a question is about: how many there are, what is printed about them, and the exit status.

use sigmund_measures::{History, Request};
use sigmund_query::gaps_note;

use crate::{Found, output::notice};

/// The gaps of the window that a request is about.
pub(crate) fn of(history: &History, request: &Request) -> usize {
    let extent = request.extent(history);
    history.gaps.iter().filter(|gap| gap.interval.clipped(extent).is_some()).count()
}

/// Prints the notice about gaps, if there are any, and returns how the command ends: an answer with so many rows was printed.
pub(crate) fn finish(rows: usize, gaps: usize, is_strict: bool) -> Found {
    if gaps > 0 {
        notice(&gaps_note(gaps));
    }
    match (rows, gaps) {
        (_, 1..) if is_strict => Found::Gaps,
        (0, _) => Found::Nothing,
        _ => Found::Something,
    }
}
