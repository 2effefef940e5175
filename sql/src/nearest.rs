//! Finds the names that are most similar to a mistyped one.

/// Maximum number of proposed names.
const PROPOSED: usize = 3;

/// The names most similar to `found` (by optimal string alignment distance), the most similar first, without
/// duplicates. A difference in case counts less than a different letter.
pub fn nearest<'n>(found: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let folded = found.to_lowercase();
    let mut near: Vec<((usize, usize), &str)> = Vec::new();
    for name in names {
        let distance =
            (strsim::osa_distance(&folded, &name.to_lowercase()), strsim::osa_distance(found, name));
        let is_far = near.len() == PROPOSED && near.last().is_some_and(|(last, _)| distance >= *last);
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

    #[test]
    fn the_nearest_names_come_first_and_none_twice() {
        let names = ["work/1", "daemon", "word", "work/1", "work", "main"];
        assert_eq!(nearest("wrok", names.into_iter()), ["work", "word", "work/1"]);
        assert_eq!(nearest("x", [].into_iter()), [""; 0]);
        assert_eq!(nearest("EVENTS", ["active", "EVENT_x", "clocks", "events"].into_iter())[0], "events");
        assert_eq!(nearest("event", ["EVENT", "event"].into_iter()), ["event", "EVENT"]);
    }
}
