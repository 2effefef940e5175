//! Super-traces of several hosts, asked as one.

use std::fs;

use crate::{sigmund::Sigmund, views::listing};

/// Two hosts with the same events; the clock of the second is twice as fast, and its thread 16 is 6 at the first.
fn fleet() -> Sigmund {
    let sigmund = Sigmund::with_listing("web-1", &listing());
    let second = listing().replace("tick_hz=1000000000", "tick_hz=2000000000").replace("next=6", "next=16");
    sigmund.merge_listing("web-2", &second.replace("\t6\t", "\t16\t"));
    sigmund
}

fn asked(sigmund: &Sigmund, query: &str) -> String {
    sigmund.run(["sql", "--fleet", ".", query, "--format", "csv"]).found()
}

#[test]
fn tables_and_views_have_the_rows_of_all_hosts() {
    let sigmund = fleet();
    let events = "SELECT host, count(*) AS n, max(ts_ns) AS last FROM events GROUP BY host ORDER BY host";
    assert_eq!(asked(&sigmund, events), "host,n,last\nweb-1,17,130\nweb-2,17,65\n");
    let latencies = "SELECT host, thread, latency_ns FROM ready_latency ORDER BY host";
    assert_eq!(asked(&sigmund, latencies), "host,thread,latency_ns\nweb-1,5,10\nweb-2,5,5\n");
    let of_an_event = "SELECT host, count(*) AS n FROM sched_switch WHERE host = 'web-2' GROUP BY host";
    assert_eq!(asked(&sigmund, of_an_event), "host,n\nweb-2,6\n");
    let of_one_host = "SELECT count(*) AS n FROM \"web-1\".events";
    assert_eq!(asked(&sigmund, of_one_host), "n\n17\n");
    let joined =
        "SELECT t.host, t.thread FROM threads t JOIN events e ON t.host = e.host AND t.thread = e.thread
        WHERE e.name = 'USER_THREAD_READY' ORDER BY t.host";
    assert_eq!(asked(&sigmund, joined), "host,thread\nweb-1,6\nweb-2,16\n");
    let schema = sigmund.run(["sql", "--fleet", ".", "--schema", "events", "--format", "csv"]).found();
    assert!(schema.starts_with("column,type,unit,what\nhost,VARCHAR,,The name of the host"), "{schema}");
}

#[test]
fn a_view_of_the_session_is_of_all_hosts() {
    let sigmund = fleet();
    let query = "CREATE VIEW mine AS SELECT host, count(*) AS n FROM events GROUP BY host; SELECT * FROM mine ORDER BY host";
    assert_eq!(asked(&sigmund, query), "host,n\nweb-1,17\nweb-2,17\n");
    for host in ["web-1", "web-2"] {
        let of_host = format!("CREATE VIEW mine AS SELECT 1 AS one; SELECT * FROM \"{host}\".mine");
        sigmund.run(["sql", "--fleet", ".", &of_host]).complained(&["found `mine`"]);
    }
    let listed = asked(&sigmund, "CREATE VIEW mine AS SELECT 1 AS one; SHOW TABLES");
    assert_eq!(listed.lines().filter(|line| line.contains("mine")).count(), 1, "{listed}");
    sigmund
        .run(["sql", "--fleet", ".", "CREATE VIEW events AS SELECT 1"])
        .complained(&["this super-trace has"]);
}

#[test]
fn measures_have_a_row_for_each_host() {
    let sigmund = fleet();
    let query =
        "SELECT host, total_tick, total_ns FROM states(thread => 5) WHERE state = 'blocked' ORDER BY host";
    assert_eq!(asked(&sigmund, query), "host,total_tick,total_ns\nweb-1,20,20\nweb-2,20,10\n");
    let said = sigmund.run(["--fleet", ".", "--states", "--thread", "5", "--format", "csv"]).found();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("host,thread,name,state,"), "{said}");
    let rows = |host: &str| lines.iter().filter(|line| line.starts_with(host)).count();
    assert!(rows("web-1,5,") > 2 && rows("web-1,5,") == rows("web-2,5,"), "{said}");
    // Of one host.
    for (host, expected) in [("web-1", "20,20"), ("web-2", "20,10")] {
        let query = format!(
            "SELECT total_tick, total_ns FROM states(thread => 5, trace => '{host}') WHERE state = 'blocked'"
        );
        assert_eq!(asked(&sigmund, &query), format!("total_tick,total_ns\n{expected}\n"));
    }
    sigmund
        .run(["sql", "--fleet", ".", "SELECT * FROM states(trace => 'web-3')"])
        .complained(&["states: trace: expected web-1, web-2, found web-3"]);
    // For people, in the time of each host's clock.
    let said = sigmund.run(["--fleet", ".", "--states", "--thread", "5"]).found();
    let blocked: Vec<&str> = said.lines().filter(|line| line.contains("blocked")).collect();
    assert!(blocked[0].contains("20 ns") && blocked[1].contains("10 ns"), "{said}");
}

#[test]
fn a_host_that_does_not_have_what_is_asked_for_is_named() {
    let sigmund = fleet();
    let said = sigmund.run(["--fleet", ".", "--states", "--thread", "16", "--format", "csv"]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("\nweb-2,16,") && !said.stdout.contains("web-1"), "{said:?}");
    assert!(said.stderr.contains("no answer from web-1: --thread: expected a user thread"), "{said:?}");
    sigmund.run(["--fleet", ".", "--states", "--thread", "99"]).complained(&["web-1", "99"]);
}

#[test]
fn rows_of_lwps_among_those_of_user_threads_are_said_to_be() {
    let sigmund = fleet();
    let kernel_only =
        listing().lines().filter(|line| !line.starts_with("USER\t")).collect::<Vec<_>>().join("\n");
    sigmund.merge_listing("plain", &kernel_only);
    let by_name = sigmund.run(["--fleet", ".", "--states", "--by", "name"]);
    let note = "sigmund: the rows of web-1, web-2 are of user threads, those of plain of LWPs";
    assert!(by_name.status == 0 && by_name.stderr.contains(note), "{by_name:?}");
    let of_lwps = sigmund.run(["--fleet", ".", "--states", "--by", "name", "--level", "kern"]);
    assert!(of_lwps.status == 0 && !of_lwps.stderr.contains("are of user threads"), "{of_lwps:?}");
    // A note of one host has its name.
    let lacking = sigmund.run(["--fleet", ".", "--states", "--thread", "16", "--by", "name"]);
    assert!(lacking.stderr.contains("sigmund: no answer from web-1: --thread"), "{lacking:?}");
}

#[test]
fn a_table_that_one_host_was_merged_without_is_named_with_the_host() {
    let sigmund = Sigmund::with_listing("web-1", &listing());
    sigmund.write("web-2.tsv", listing().as_bytes());
    let without = ["merge", "web-2.tsv", "-o", "web-2.supertrace", "--tables", "syscalls"];
    assert_eq!(sigmund.run(without).status, 0);
    let query = ["sql", "--fleet", ".", "SELECT count(*) FROM wakeups"];
    sigmund.run(query).complained(&["web-2", "the table wakeups was left out"]);
}

#[test]
fn a_fleet_that_cannot_be_read_is_named() {
    let sigmund = fleet();
    fs::create_dir(sigmund.path("empty")).unwrap();
    sigmund.run(["--fleet", "empty", "--states"]).complained(&["empty: expected a folder of super-traces"]);
    sigmund.run(["--fleet", "none", "--states"]).complained(&["none"]);
    sigmund
        .run(["--fleet", ".", "--functions", "--format", "folded"])
        .complained(&["--fleet: expected a table"]);
    sigmund.run(["--fleet", "."]).complained(&["--fleet: expected a measure"]);
    sigmund.run(["--fleet", ".", "--list-events"]).complained(&["--fleet", "--list-events"]);
    sigmund.run(["sql", "--fleet", ".", "a=web-1.supertrace", "SELECT 1"]).complained(&["found both"]);

    fs::write(sigmund.path("web-2.supertrace/info/part-00000.parquet"), b"damage").unwrap();
    sigmund.run(["--fleet", ".", "--states"]).complained(&["web-2.supertrace/info"]);
    let said = sigmund.run(["--fleet", ".", "--states", "--format", "csv", "--keep-going"]);
    assert_eq!(said.status, 2, "{said:?}");
    assert!(said.stdout.contains("\nweb-1,"), "{said:?}");
    assert!(said.stderr.contains("left out 1 host of .: answers lack their rows"), "{said:?}");
}

#[test]
fn a_host_may_have_a_name_that_a_schema_has() {
    let sigmund = fleet();
    fs::rename(sigmund.path("web-2.supertrace"), sigmund.path("public.supertrace")).unwrap();
    let hosts = asked(&sigmund, "SELECT host, count(*) AS n FROM events GROUP BY host ORDER BY host");
    assert_eq!(hosts, "host,n\nhost_public,17\nweb-1,17\n");
    assert_eq!(asked(&sigmund, "SELECT count(*) AS n FROM host_public.events"), "n\n17\n");
}
