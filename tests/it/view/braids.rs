//! Which instances of a span are drawn as braids.

use serde_json::json;

use super::Server;
use crate::{kernel, sigmund::Sigmund};

#[test]
fn the_braids_are_the_longest_instances_of_the_first_band_and_of_all() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    crate::docs::my_server_in(&sigmund.path(""));
    sigmund.run(["record", "-o", "RUN", "--", "./myserver"]).found();
    drop(alone);
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let query = "SELECT dur_tick FROM spans WHERE name = 'request' AND end_reason IN ('returned', 'exit') ORDER BY dur_tick";
    let lengths: Vec<i64> =
        sigmund.sql("RUN.supertrace", query).iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(lengths.len() > 100);
    let braids = server.json("braids?subject=request");
    let rows = braids["rows"].as_array().unwrap();
    let of = |name: &str| {
        let pieces: Vec<(i64, i64)> = rows
            .iter()
            .filter(|row| row[0] == json!(name))
            .map(|row| (row[1].as_i64().unwrap(), row[2].as_i64().unwrap()))
            .collect();
        assert!(pieces.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "{name}: one after the other");
        pieces.iter().map(|(_, length)| length).sum::<i64>()
    };
    // Those that touch a gap are in no band.
    let bands = server.json("measure?name=explain&subject=request");
    let apart = bands["rows"].as_array().unwrap().iter();
    let apart = apart.filter(|row| ["touches a gap", "cut off"].contains(&row[0].as_str().unwrap()));
    if apart.filter_map(|row| row[5].as_i64()).sum::<i64>() == 0 {
        assert_eq!(of("median"), lengths[lengths.len().div_ceil(2) - 1]);
        assert_eq!(of("slowest"), lengths[lengths.len() - 1]);
    }
    assert!(of("median") > 0 && of("median") <= of("slowest"));
}
