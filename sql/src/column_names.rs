//! Unique names for the columns of an event view: fields of recorded events may have any name.

use std::collections::{HashMap, HashSet};

/// Gives each column a unique name. The time is linear in the total length of the names.
#[derive(Debug, Default)]
pub(crate) struct ColumnNames {
    taken: HashSet<String>,
    /// The next number for a name that is already taken.
    next: HashMap<String, u64>,
}

impl ColumnNames {
    /// `taken` are names that may not be used.
    pub(crate) fn without(taken: &[&str]) -> ColumnNames {
        ColumnNames { taken: taken.iter().map(ToString::to_string).collect(), next: HashMap::new() }
    }

    /// `wanted` if it is free. Otherwise the first free name of `field_WANTED`, `field_WANTED_2`, `field_WANTED_3`, ….
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        if !wanted.is_empty() && self.taken.insert(wanted.to_string()) {
            return wanted.to_string();
        }
        let first = format!("field_{wanted}");
        if self.taken.insert(first.clone()) {
            return first;
        }
        let number = self.next.entry(wanted.to_string()).or_insert(2);
        loop {
            // A name with this number is taken if it was given out before, or if a field has it as its own name. Each
            // of these happens once, so the loop is linear in total.
            let name = format!("{first}_{number}");
            *number += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_prefixed_and_then_numbered() {
        let mut names = ColumnNames::without(&["cpu"]);
        assert_eq!(
            ["cpu", "a", "a", "a", "a"].map(|n| names.take(n)),
            ["field_cpu", "a", "field_a", "field_a_2", "field_a_3"]
        );
        assert_eq!(
            ["field_b_2", "field_b", "b", "b"].map(|n| names.take(n)),
            ["field_b_2", "field_b", "b", "field_b_3"]
        );
        assert_eq!(["", ""].map(|n| names.take(n)), ["field_", "field__2"]);
    }

    #[test]
    fn many_fields_of_one_name_take_no_longer_than_as_many_of_different_names() {
        let mut names = ColumnNames::default();
        let longest = (0..100_000).map(|_| names.take("x").len()).max();
        assert_eq!(longest, Some("field_x_99999".len()));
    }
}
