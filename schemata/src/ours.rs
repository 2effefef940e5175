//! The built-in schemata, and names similar to one that was not found.

use crate::Schema;

/// Names that are suggested.
const SUGGESTED: usize = 3;

/// The schema for a trace that was recorded without one.
pub const OVERVIEW: &str = "overview";

/// Names and texts of the built-in schemata, in the order in which they are listed.
pub const OURS: &[(&str, &str)] = &[
    (OVERVIEW, include_str!("../ours/overview.toml")),
    ("stopwatch", include_str!("../ours/stopwatch.toml")),
    ("scheduler", include_str!("../ours/scheduler.toml")),
    ("latency", include_str!("../ours/latency.toml")),
    ("locks", include_str!("../ours/locks.toml")),
    ("interrupts", include_str!("../ours/interrupts.toml")),
    ("syscalls", include_str!("../ours/syscalls.toml")),
    ("memory", include_str!("../ours/memory.toml")),
];

/// A built-in schema, by its name.
pub fn our(name: &str) -> Option<Schema> {
    let (name, text) = OURS.iter().find(|(our, _)| *our == name)?;
    Schema::parse(name, text).ok()
}

/// The names of the built-in schemata.
pub fn names() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|(name, _)| *name)
}

/// The names nearest to `found`, the nearest first.
pub fn nearest<'n>(found: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut near: Vec<(usize, &str)> = names.map(|name| (strsim::osa_distance(found, name), name)).collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// `; nearest: locks, latency`
pub(crate) fn suggestion<'n>(found: &str, names: impl Iterator<Item = &'n str>) -> String {
    // The cost of a distance is the product of the lengths, so the name is cut.
    let found: String = found.chars().take(SUGGESTION_LEN).collect();
    format!("; nearest: {}", nearest(&found, names).join(", "))
}

/// The number of characters of an unknown name that are compared.
const SUGGESTION_LEN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_schemata_and_have_the_names_they_are_found_by() {
        for (name, text) in OURS {
            let schema = Schema::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(schema.name, *name);
            assert!(schema.about.ends_with('.'), "{name}: {}", schema.about);
            let is_question = |question: &crate::Question| question.text.ends_with('?');
            assert!(schema.questions.iter().all(is_question), "{name}");
            assert_eq!(our(name).unwrap().text, *text);
        }
        assert!(our("locs").is_none());
        assert_eq!(nearest("locs", names())[0], "locks");
    }
}
