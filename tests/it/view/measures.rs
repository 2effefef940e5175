//! What the page has to name before it asks for a measure.

use super::{Server, TRACE};
use crate::{sigmund::Sigmund, views::listing};

#[test]
fn the_measures_that_are_refused_without_a_subject_or_a_pair_are_those_that_say_so() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let trace = server.json("trace");
    let mut required = Vec::new();
    for measure in trace["measures"].as_array().unwrap() {
        let name = measure["name"].as_str().unwrap();
        let reply = server.get(&format!("measure?name={name}"));
        let needs = measure["required"].as_str();
        let expected = if needs.is_some() { 400 } else { 200 };
        assert_eq!(reply.status, expected, "{name}: {}", String::from_utf8_lossy(&reply.body));
        required.extend(needs.map(|needs| (name, needs)));
    }
    required.sort_unstable();
    assert_eq!(
        required,
        [("critical-path", "subject, pair or actor"), ("explain", "subject or pair"), ("reactivity", "pair"),]
    );
    let of_thread = server.json("measure?name=critical-path&keys=thread:5");
    assert!(!of_thread["rows"].as_array().unwrap().is_empty(), "{of_thread}");
}
