//! What goes wrong on a cluster: each error is one line that says what to do.

use std::{fs, process::Command};

use rustix::process::{Signal, kill_process};

use super::{
    long_trace,
    processes::{Client, Cluster, Process, cpu_ticks, free_port, is_ready, wait_until},
};
use crate::{
    sigmund::{Sigmund, program},
    views::listing,
};

/// Seconds of work for two executors.
const LONG: &str = "SELECT count(*) AS n, sum(a.ts_tick % 7) AS s FROM lwp_states a JOIN syscalls b ON a.lwp <> b.lwp + 1000 \
    WHERE a.ts_tick < 3000000 AND b.ts_tick < 300000";

#[test]
fn executors_that_are_killed_or_suspended_are_replaced() {
    let (mut cluster, sigmund) = (Cluster::start_with("2", "6s", &[]), long_trace());
    let expected = sigmund.run(["sql", "t.supertrace", LONG, "--format", "csv"]).found();
    let words = ["sql", "t.supertrace", LONG, "--format", "csv", "--cluster", &cluster.url];
    let ticks = |cluster: &Cluster| cluster.executors.each_ref().map(|executor| cpu_ticks(executor.0.id()));
    let before = ticks(&cluster);
    let mut asked = sigmund.start(words);
    let mut working = None;
    wait_until("an executor works", || {
        working = (0..2).find(|number| ticks(&cluster)[*number] > before[*number] + 20);
        working.is_some()
    });
    let working = working.unwrap();
    cluster.executors[working].0.kill().unwrap();
    assert!(asked.child.try_wait().unwrap().is_none(), "the answer was there before the executor was killed");
    let said = asked.finish();
    assert_eq!((said.status, &said.stdout), (0, &expected), "{said:?}");
    // The other is suspended until the scheduler has given it up, and goes on.
    let other = cluster.executors[1 - working].pid();
    kill_process(other, Signal::STOP).unwrap();
    wait_until("the scheduler has lost both", || !is_ready(&cluster.url));
    kill_process(other, Signal::CONT).unwrap();
    // It may be ended first, by the scheduler, and a query with it.
    let answers = || {
        let said =
            cluster.run(&sigmund, &["sql", "t.supertrace", "SELECT count(*) FROM events", "--format", "csv"]);
        said.stdout.ends_with("\n340000\n")
    };
    wait_until("the executor is back, and answers", answers);
    // Three of its reports later the scheduler still gives it work.
    std::thread::sleep(std::time::Duration::from_secs(6));
    wait_until("the executor stays", answers);
    // Nobody is left.
    cluster.executors.iter_mut().for_each(|executor| executor.0.kill().unwrap());
    let said = cluster.run(&sigmund, &["sql", "t.supertrace", LONG]);
    said.complained(&["executor"]);
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

#[test]
fn a_super_trace_that_is_replaced_gives_an_error_and_no_mixture() {
    let (cluster, sigmund) = (Cluster::start(&[]), Sigmund::with_listing("t", &listing()));
    let query = "SELECT count(*) AS n FROM events WHERE cpu < 9";
    let words = ["sql", "t.supertrace", "--format", "csv", "--cluster", &cluster.url];
    let client = || {
        let mut client = sigmund.command();
        client.args(words);
        Client::start(client)
    };
    let replaced_by = |name: &str, old: &str| {
        fs::rename(sigmund.path("t.supertrace"), sigmund.path(old)).unwrap();
        fs::rename(sigmund.path(name), sigmund.path("t.supertrace")).unwrap();
    };
    let other: String = listing().lines().take(9).map(|line| format!("{line}\n")).collect();
    sigmund.merge_listing("other", &other);
    let first = client();
    replaced_by("other.supertrace", "old.supertrace");
    // The executors find the new one.
    first.ask(query).complained(&["t.supertrace", "it was replaced meanwhile", "ask again"]);
    assert_eq!(client().ask(query).found(), "n\n7\n");
    let second = client();
    replaced_by("old.supertrace", "other.supertrace");
    // An executor that has the one of this client open keeps it.
    let said = second.ask(query);
    assert!(said.stdout == "n\n7\n" || said.stderr.contains("it was replaced meanwhile"), "{said:?}");
    assert_eq!(client().ask(query).found(), "n\n17\n");
}
