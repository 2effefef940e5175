//! A query can be cancelled whatever its plan is. A program of its own: how many CPUs there are is asked once a process, and
//! here it is one.

#[path = "it/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::{sync::mpsc, thread, time::Duration};

use rustix::thread::{CpuSet, sched_setaffinity};
use sigmund_sql::SuperTrace;
use support::Little;
use tokio::{runtime, time::timeout};

/// The query is cancelled after this time.
const PATIENCE: Duration = Duration::from_millis(200);

/// If it goes on for this long, it cannot be cancelled.
const FAILED: Duration = Duration::from_secs(20);

/// A table of 10 000 rows.
const ROWS: &str = "WITH rows AS (SELECT value AS n FROM generate_series(1, 10000)) ";

/// Each has 10^12 pairs of rows to look at.
const ENDLESS: [&str; 5] = [
    // A nested loop whose one side has millions of rows, with each of which it compares a batch of the other.
    "SELECT count(*) FROM generate_series(1, 4000000) a JOIN generate_series(1, 4000000) b ON a.value + b.value < 0",
    // A nested loop that finds nothing.
    "SELECT count(*) FROM rows a, rows b, rows c WHERE a.n + c.n = b.n - 100000",
    // Cross joins.
    "SELECT sum(a.n * b.n * c.n) FROM rows a, rows b, rows c",
    // A nested loop that finds many.
    "SELECT count(*) FROM rows a JOIN rows b ON a.n <= b.n JOIN rows c ON c.n <= b.n",
    // Each row has the same key.
    "SELECT count(*) FROM rows a JOIN rows b ON a.n / 100000 = b.n / 100000 JOIN rows c ON c.n / 100000 = a.n / 100000",
];

#[test]
fn a_query_of_any_plan_is_cancelled() {
    for query in ENDLESS {
        let (sender, receiver) = mpsc::channel();
        // One thread for the query and the timer: the timer is late if the query does not yield.
        thread::spawn(move || {
            // On one CPU there are no exchanges, where a query yields anyway.
            let mut cpus = CpuSet::new();
            cpus.set(rustix::thread::sched_getcpu());
            sched_setaffinity(None, &cpus).unwrap();
            // It looks at the timer whenever the query yields, and not after 61 times.
            let runtime =
                runtime::Builder::new_current_thread().event_interval(1).enable_time().build().unwrap();
            let is_late = runtime.block_on(async {
                let trace = SuperTrace::open(Little::new().write()).await.unwrap();
                let result = trace.sql(&format!("{ROWS}{query}")).await.unwrap();
                timeout(PATIENCE, result.to_text()).await.is_err()
            });
            sender.send(is_late).unwrap();
        });
        assert_eq!(receiver.recv_timeout(FAILED), Ok(true), "{query}");
    }
}
