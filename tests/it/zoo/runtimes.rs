//! Two runtimes in one process: their user threads have numbers of their own, and stay on their runtime's LWPs.

use std::thread;

use super::program::{self, TRACE, is_whole, recorded};
use crate::kernel;

const NAME: &str = "two runtimes";
const THREADS: u64 = 40;

fut::events! {
    fn zoo_runtime(runtime: u64, number: u64);
}

#[test]
#[ignore = "a program for another test"]
fn has_two_runtimes() {
    if !program::is(NAME) {
        return;
    }
    thread::scope(|scope| {
        for number in 0..2 {
            scope.spawn(move || runtime(number));
        }
    });
    println!("account threads={}", 2 * THREADS);
}

fn runtime(number: u64) {
    let runtime = fut::Runtime::builder().lwps(2).build().unwrap();
    let name = ["runtime 0", "runtime 1"][number as usize];
    runtime.run(move || {
        let spawn = |thread: u64| {
            fut::Builder::new().name(name).spawn(move || {
                for event in 0..20 {
                    zoo_runtime(number, thread * 20 + event);
                    fut::yield_now();
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn the_threads_of_two_runtimes_are_told_apart() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, account) = recorded("zoo::runtimes::has_two_runtimes", NAME);
    assert_eq!(account.number("threads"), 80);
    let named = "SELECT name, count(*) FROM threads WHERE name LIKE 'runtime %' GROUP BY name ORDER BY name";
    assert_eq!(sigmund.sql(TRACE, named), [["runtime 0", "40"], ["runtime 1", "40"]]);
    // 20 events each, all by a thread of the runtime that they name.
    let events =
        "SELECT count(*), count(DISTINCT e.thread) FROM zoo_runtime e JOIN threads t ON e.thread = t.thread
        WHERE t.name = concat('runtime ', CAST(e.runtime AS VARCHAR))";
    assert_eq!(sigmund.sql(TRACE, events), [["1600", "80"]]);
    // No LWP carried threads of both.
    let shared =
        "SELECT count(*) FROM (SELECT lwp FROM zoo_runtime GROUP BY lwp HAVING min(runtime) <> max(runtime))";
    assert_eq!(sigmund.number(TRACE, shared), 0);
    is_whole(&sigmund);
}
