//! What goes wrong on a cluster: each error is one line that says what to do.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    long_trace,
    processes::{Cluster, Process, free_port},
};
use crate::{
    sigmund::{Running, Sigmund, program},
    views::listing,
};

/// Seconds of work for two executors.
const LONG: &str = "SELECT count(*) AS n, sum(a.ts_tick % 7) AS s FROM lwp_states a JOIN syscalls b ON a.lwp <> b.lwp + 1000 \
    WHERE a.ts_tick < 3000000 AND b.ts_tick < 300000";

#[test]
fn an_executor_that_is_killed_is_replaced_by_the_other() {
    let (mut cluster, sigmund) = (Cluster::start(&[]), long_trace());
    let expected = sigmund.run(["sql", "t.supertrace", LONG, "--format", "csv"]).found();
    let words = ["sql", "t.supertrace", LONG, "--format", "csv", "--cluster", &cluster.url];
    let asked = sigmund.start(words);
    thread::sleep(Duration::from_millis(1500));
    cluster.executors[0].0.kill().unwrap();
    let said = asked.finish();
    assert_eq!((said.status, &said.stdout), (0, &expected), "{said:?}");
    // Nobody is left.
    cluster.executors.clear();
    let begin = Instant::now();
    let said = cluster.run(&sigmund, &["sql", "t.supertrace", LONG]);
    said.complained(&["executor"]);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn a_cluster_that_is_not_there_is_said_with_what_to_do() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let asked = |url: &str, words: &[&str]| {
        let said = sigmund.run(["sql", "t.supertrace", "SELECT * FROM wakeups", "--cluster", url]);
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        said.complained(words);
    };
    let nobody = format!("http://127.0.0.1:{}", free_port());
    asked(&nobody, &["--cluster: no scheduler answers at", "sigmund scheduler"]);
    asked("grpc://127.0.0.1:1", &["expected http://HOST:PORT"]);
    asked("nowhere", &["expected http://HOST:PORT"]);
    let mut scheduler = Command::new(program());
    scheduler.args(["scheduler", "--listen", "127.0.0.1:0"]);
    let (_scheduler, url) = Process::listening(scheduler);
    asked(&url, &["has no executor", "sigmund executor --scheduler http://"]);
    sigmund
        .run(["executor", "--scheduler", &nobody])
        .complained(&["expected a scheduler at http://", "sigmund scheduler"]);
    sigmund.run(["--cluster", &url, "--list-events"]).complained(&["--cluster: "]);
    sigmund.run(["scheduler", "--listen", "0.0.0.0:0"]).complained(&["expected --host"]);
    sigmund.run(["scheduler", "--lost-after", "1s"]).complained(&["expected 6s or more"]);
}

#[test]
fn what_a_cluster_cannot_answer_is_refused() {
    let (cluster, sigmund) = (Cluster::start(&[]), Sigmund::with_listing("t", &listing()));
    let refused = |query: &str, words: &[&str]| {
        let said = cluster.run(&sigmund, &["sql", "t.supertrace", query]);
        said.complained(words);
    };
    refused("EXPLAIN ANALYZE SELECT * FROM wakeups", &["EXPLAIN ANALYZE", "--cluster"]);
    refused(
        "SELECT last_value(thread) IGNORE NULLS OVER (ORDER BY ts_tick) FROM events",
        &["IGNORE NULLS", "leave out --cluster"],
    );
    refused("SELECT * FROM wakeups, generate_series(1, 3)", &["leave out --cluster"]);
    refused("SELECT * FROM wakups", &["nearest: wakeups"]);
    refused("SELECT * FROM states(thread => 55)", &["a user thread of this trace"]);
}

/// A client that has opened `t.supertrace` and waits for queries on its standard input.
fn waiting_client(cluster: &Cluster, sigmund: &Sigmund) -> Running {
    let mut client = sigmund.command();
    client.args(["sql", "t.supertrace", "--format", "csv", "--cluster", &cluster.url]).stdin(Stdio::piped());
    let client = Running::of(client);
    let begin = Instant::now();
    let has_opened = || {
        let open = fs::read_dir(format!("/proc/{}/fd", client.pid())).unwrap();
        let paths = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        paths.filter(|path| path.to_string_lossy().contains("t.supertrace/wakeups")).count() > 0
    };
    while !has_opened() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not open the super-trace");
        thread::sleep(Duration::from_millis(20));
    }
    client
}

#[test]
fn a_super_trace_that_is_replaced_gives_an_error_and_no_mixture() {
    let (cluster, sigmund) = (Cluster::start(&[]), Sigmund::with_listing("t", &listing()));
    let query = "SELECT count(*) AS n FROM events WHERE cpu < 9";
    let mut client = waiting_client(&cluster, &sigmund);
    let other: String = listing().lines().take(9).map(|line| format!("{line}\n")).collect();
    sigmund.merge_listing("other", &other);
    fs::rename(sigmund.path("t.supertrace"), sigmund.path("old.supertrace")).unwrap();
    fs::rename(sigmund.path("other.supertrace"), sigmund.path("t.supertrace")).unwrap();
    // The executors would open the new one.
    client.child.stdin.take().unwrap().write_all(query.as_bytes()).unwrap();
    client.finish().complained(&["t.supertrace", "it was replaced meanwhile", "ask again"]);
    // A new client reads the new one; who is open already, the executors keep.
    let words = ["sql", "t.supertrace", query, "--format", "csv"];
    assert_eq!(cluster.run(&sigmund, &words).found(), "n\n7\n");
    let mut client = waiting_client(&cluster, &sigmund);
    fs::rename(sigmund.path("t.supertrace"), sigmund.path("other.supertrace")).unwrap();
    fs::rename(sigmund.path("old.supertrace"), sigmund.path("t.supertrace")).unwrap();
    client.child.stdin.take().unwrap().write_all(query.as_bytes()).unwrap();
    let said = client.finish();
    assert!(said.stdout == "n\n7\n" || said.stderr.contains("it was replaced meanwhile"), "{said:?}");
    assert_eq!(cluster.run(&sigmund, &words).found(), "n\n17\n");
}
