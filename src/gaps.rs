//! Gaps in the time of a question: the notice about them, and the exit status.

use sigmund_query::gaps_note;

use crate::{Found, output::notice};

/// Prints a notice if there are gaps. Returns how the command ends, after an answer with `rows` rows was printed.
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
