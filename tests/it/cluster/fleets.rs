//! Fleets on a cluster: each host is a part of its own.

use super::processes::Cluster;
use crate::{sigmund::Sigmund, views::listing};

#[test]
fn a_fleet_has_the_answers_of_one_process() {
    let sigmund = Sigmund::with_listing("web-1", &listing());
    let second = listing().replace("tick_hz=1000000000", "tick_hz=2000000000").replace("next=6", "next=16");
    sigmund.merge_listing("web-2", &second.replace("\t6\t", "\t16\t"));
    let cluster = Cluster::start(&[]);
    for words in [
        &[
            "sql",
            "--fleet",
            ".",
            "SELECT host, count(*) AS n, max(ts_ns) AS last FROM events WHERE cpu < 9 GROUP BY host ORDER BY host",
        ][..],
        &["sql", "--fleet", ".", "SELECT host, thread, latency_ns FROM ready_latency ORDER BY host"],
        &["sql", "--fleet", ".", "SELECT count(*) AS n FROM \"web-1\".events WHERE cpu < 9"],
        &[
            "sql",
            "--fleet",
            ".",
            "SELECT host, total_tick, total_ns FROM states(thread => 5) WHERE state = 'blocked' ORDER BY host",
        ],
        &["--fleet", ".", "--states", "--thread", "5"],
        &["--fleet", ".", "--states", "--thread", "5", "--format", "json"],
        // Only one host has it.
        &["--fleet", ".", "--states", "--thread", "16", "--format", "csv"],
        &["--fleet", ".", "--states", "--thread", "99"],
    ] {
        let (one, there) = (sigmund.run(words), cluster.run(&sigmund, words));
        assert_eq!((there.status, &there.stdout, &there.stderr), (one.status, &one.stdout, &one.stderr));
    }
}
