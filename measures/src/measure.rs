//! All measures, by name.

use crate::{Answer, History, Needs, Request, critical_path, explain, reactivity, states};

/// A question that can be asked of any trace.
#[derive(Clone, Copy)]
pub struct Measure {
    /// Its name: the flag of the command, and the table function of SQL (with `_` for `-`).
    pub name: &'static str,
    /// The question that it answers, in words of a person.
    pub question: &'static str,
    /// Its exact definition.
    pub definition: &'static str,
    /// The tables that it needs.
    pub needs: Needs,
    /// The answer, or what is wrong with the request.
    pub answer: fn(&History, &Request) -> Result<Answer, String>,
}

impl std::fmt::Debug for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Measure").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every measure, in the order of the command's help.
pub const ALL: &[Measure] =
    &[states::STATES, critical_path::CRITICAL_PATH, explain::EXPLAIN, reactivity::REACTIVITY];

/// The measure of this name.
pub fn named(name: &str) -> Option<&'static Measure> {
    ALL.iter().find(|measure| measure.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_an_empty_trace_has_an_empty_answer() {
        for (place, measure) in ALL.iter().enumerate() {
            assert!(ALL[..place].iter().all(|other| other.name != measure.name), "{}", measure.name);
            assert!(measure.question.ends_with('?'), "{}", measure.name);
            let answer = (measure.answer)(&History::default(), &Request::default());
            if let Ok(answer) = answer {
                assert_eq!(answer.rows, Vec::<Vec<_>>::new(), "{}", measure.name);
                assert!(!answer.columns.is_empty(), "{}", measure.name);
            }
        }
    }
}
