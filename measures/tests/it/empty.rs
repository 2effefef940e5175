//! Each measure of a trace without events.

use sigmund_measures::{ALL, History, Request};

#[test]
fn names_differ_and_an_empty_trace_has_an_empty_answer() {
    for (place, measure) in ALL.iter().enumerate() {
        assert!(ALL[..place].iter().all(|other| other.name != measure.name), "{}", measure.name);
        assert!(measure.question.ends_with('?'), "{}", measure.name);
        let answer = measure.answer(&History::default(), &Request::default());
        if let Ok(answer) = answer {
            assert!(answer.rows.is_empty(), "{}", measure.name);
            assert!(!answer.columns.is_empty(), "{}", measure.name);
        }
    }
}
