//! Finds the names that are most similar to a mistyped one.

/// Maximum number of proposed names.
const PROPOSED: usize = 3;

/// The names most similar to `found` (by optimal string alignment distance), the most similar first, without
/// duplicates. A difference in case counts less than a different letter.
pub fn nearest<'n>(found: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let folded = found.to_lowercase();
    let length = folded.chars().count();
    let mut near: Vec<((usize, usize), &str)> = Vec::new();
    for name in names {
        let last = if near.len() == PROPOSED { near.last().map(|(last, _)| *last) } else { None };
        // Of millions of names, most are too long or too short to be near. Where a letter in upper case is several in lower case,
        // the lengths say nothing.
        if name.is_ascii() && last.is_some_and(|last| name.len().abs_diff(length) > last.0) {
            continue;
        }
        let in_lower_case = strsim::osa_distance(&folded, &name.to_lowercase());
        if last.is_some_and(|last| in_lower_case > last.0) {
            continue;
        }
        let distance = (in_lower_case, strsim::osa_distance(found, name));
        let is_far = last.is_some_and(|last| distance >= last);
        if is_far || near.iter().any(|(_, other)| *other == name) {
            continue;
        }
        let place = near.partition_point(|(other, _)| *other <= distance);
        near.insert(place, (distance, name));
        near.truncate(PROPOSED);
    }
    near.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        // Against all distances, sorted.
        #[test]
        fn no_name_that_is_left_out_is_nearer(
            found in "[aAbİ]{0,6}",
            names in proptest::collection::vec("[aAbİ]{0,9}", 0..40),
        ) {
            let distance = |name: &&str| {
                (strsim::osa_distance(&found.to_lowercase(), &name.to_lowercase()), strsim::osa_distance(&found, name))
            };
            let mut expected: Vec<&str> = Vec::new();
            let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
            sorted.sort_by_key(distance);
            for name in sorted {
                if expected.len() < PROPOSED && !expected.contains(&name) {
                    expected.push(name);
                }
            }
            let near = nearest(&found, names.iter().map(String::as_str));
            let distances = |names: &[&str]| names.iter().map(distance).collect::<Vec<_>>();
            proptest::prop_assert_eq!(distances(&near), distances(&expected));
        }
    }

    #[test]
    fn the_nearest_names_come_first_and_none_twice() {
        let names = ["work/1", "daemon", "word", "work/1", "work", "main"];
        assert_eq!(nearest("wrok", names.into_iter()), ["work", "word", "work/1"]);
        assert_eq!(nearest("x", [].into_iter()), [""; 0]);
        assert_eq!(nearest("EVENTS", ["active", "EVENT_x", "clocks", "events"].into_iter())[0], "events");
        assert_eq!(nearest("event", ["EVENT", "event"].into_iter()), ["event", "EVENT"]);
    }
}
