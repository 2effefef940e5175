//! Rejects selectors of events that a trace does not have, and proposes similar names.

use datafusion::{
    functions_nested::expr_fn::array_element,
    logical_expr::{ident, lit},
};
use sigmund_model::{names, tables::EVENTS};
use sigmund_sql::SuperTrace;

use super::selector::Selector;
use crate::Error;

/// The maximum number of proposed names.
const MOST_PROPOSED: usize = 3;

/// Checks that the trace declares the event that the selector names, or has one that `USER_EVENT` names.
///
/// # Errors
/// When it has none, with the nearest names; when the trace cannot be read.
pub(crate) async fn check(trace: &SuperTrace, selector: &Selector) -> Result<(), Error> {
    let declares = |name: &str| {
        let names = names::synonyms(name);
        trace.event_types().iter().any(|event| names.contains(&event.ty.name.as_str()))
    };
    if declares(&selector.name) {
        return Ok(());
    }
    // USER_EVENT(received_msg) is another name for received_msg.
    let name = match &selector.condition {
        Some(condition) if selector.name == names::USER_EVENT && condition.field.is_none() => {
            if declares(&condition.value) {
                return Ok(());
            }
            &condition.value
        }
        _ => &selector.name,
    };
    if declares(names::USER_EVENT) && is_named_by_user_event(trace, name).await? {
        return Ok(());
    }
    let nearest = nearest(trace, name);
    let nearest = match nearest.as_slice() {
        [] => "`sigmund info` lists those it has".to_string(),
        names => format!("the nearest names are {}", names.join(", ")),
    };
    Err(Error::argument(format!("selector `{selector}`: the trace has no event `{name}`; {nearest}")))
}

async fn is_named_by_user_event(trace: &SuperTrace, name: &str) -> Result<bool, Error> {
    let on_table = Error::on(trace, EVENTS.name);
    let text = array_element(ident("texts"), lit(1_i64)).eq(lit(name));
    let is_one = ident("name").eq(lit(names::USER_EVENT)).and(text);
    let one = trace.raw(&EVENTS).await?.filter(is_one).and_then(|rows| rows.limit(0, Some(1)));
    let rows = one.map_err(&on_table)?.count().await.map_err(&on_table)?;
    Ok(rows > 0)
}

/// Similar names of events, the nearest first.
fn nearest<'t>(trace: &'t SuperTrace, name: &str) -> Vec<&'t str> {
    let mut alike: Vec<(usize, &str)> = Vec::new();
    for event in trace.event_types() {
        for candidate in names::synonyms(&event.ty.name) {
            let distance = distance(name, candidate);
            let is_part = candidate.to_lowercase().contains(&name.to_lowercase());
            if is_part || distance <= name.chars().count().max(3) / 3 {
                alike.push((if is_part { 0 } else { distance }, candidate));
            }
        }
    }
    alike.sort_unstable();
    alike.dedup();
    alike.into_iter().take(MOST_PROPOSED).map(|(_, name)| name).collect()
}

/// The Levenshtein distance of two names, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("abc", "ABC", 0),
            ("recieved", "received", 2),
            ("sched", "", 5),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits), "{a} {b}");
        }
    }
}
