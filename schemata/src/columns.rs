//! The columns that a schema may name: those of an answer, with or without their unit.

use std::collections::BTreeSet;

use sigmund_measures::{By, History, Measure, Request, Subject};

use crate::nearest;

/// Columns that identify what a row is about. Which of them an answer has depends on the grouping and on the trace.
const OF_GROUPS: [&str; 5] = ["thread", "lwp", "pid", "name", "pattern"];

/// The name of a column without its unit.
pub fn short(column: &str) -> &str {
    column.strip_suffix("_tick").or_else(|| column.strip_suffix("_ns")).unwrap_or(column)
}

/// Whether the name `wanted` in a schema stands for `column`, which is one of `all`. `_tick` and `_ns` may be left out.
pub fn means<S: AsRef<str>>(wanted: &str, column: &str, all: &[S]) -> bool {
    wanted == column || (wanted == short(column) && !has(all, wanted))
}

/// The reason why `wanted` is no column of an answer with the columns `all`, with the nearest names. `None` if it is
/// one. Also `None` if it is one of the columns that depend on the grouping, or if `all` is empty.
pub fn unknown_column<S: AsRef<str>>(wanted: &str, all: &[S]) -> Option<String> {
    let is_known =
        OF_GROUPS.contains(&wanted) || all.iter().any(|column| means(wanted, column.as_ref(), all));
    if is_known || all.is_empty() {
        return None;
    }
    // The names as people write them, without the unit where possible.
    let names = all.iter().map(|column| match column.as_ref() {
        column if has(all, short(column)) => column,
        column => short(column),
    });
    let names: BTreeSet<&str> = names.collect();
    let near = nearest(wanted, names.into_iter()).join(", ");
    Some(format!("expected a column of this answer, found {wanted:?}; nearest: {near}"))
}

fn has<S: AsRef<str>>(all: &[S], column: &str) -> bool {
    all.iter().any(|other| other.as_ref() == column)
}

/// Whether a measure may be about pairs of events.
pub(crate) fn takes_pairs(measure: &Measure) -> bool {
    matches!(measure.subject, Subject::Pair | Subject::RequiredOrPair(_) | Subject::OptionalOrPair(_))
}

/// The columns that answers of a measure may have: those of an empty trace, with user threads and without.
pub(crate) fn of_measure(measure: &Measure, by: Option<By>, worst: usize) -> Vec<String> {
    let mut columns = Vec::new();
    for threads in [Some(BTreeSet::new()), None] {
        // The columns do not depend on which span it is about. An empty trace has none.
        let is_of_pairs = takes_pairs(measure);
        let request = Request { by, threads, worst: worst.min(1), is_of_pairs, ..Request::default() };
        let answer = measure.answer(&History::default(), &request).unwrap_or_default();
        columns.extend(answer.columns.into_iter().map(|column| column.name.into_owned()));
    }
    columns
}

#[cfg(test)]
mod tests {
    use sigmund_measures::ALL;

    use super::*;

    #[test]
    fn the_columns_of_every_measure_are_known_without_a_trace() {
        for measure in ALL {
            for by in By::ALL.map(Some).into_iter().chain([None]) {
                for worst in [0, 3] {
                    assert!(!of_measure(measure, by, worst).is_empty(), "{} {by:?} {worst}", measure.name);
                }
            }
        }
        assert!(of_measure(sigmund_measures::named("latency").unwrap(), None, 1).contains(&"waker".into()));
    }

    #[test]
    fn units_may_be_left_out_and_near_names_have_none() {
        let all = ["name", "culprit", "culprit_tick", "total_tick", "lwp_ns"];
        assert!(means("total", "total_tick", &all) && means("total_tick", "total_tick", &all));
        assert!(means("culprit", "culprit", &all) && !means("culprit", "culprit_tick", &all));
        let why = unknown_column("totl", &all).unwrap();
        assert!(why.ends_with("found \"totl\"; nearest: total, lwp, name"), "{why}");
        assert!(unknown_column("culprit_tik", &all).unwrap().contains("nearest: culprit_tick"));
        assert_eq!(unknown_column("pattern", &all), None);
        assert_eq!(unknown_column("totl", &[""; 0]), None);
    }
}
