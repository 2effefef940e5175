//! Active time in random super-traces. The whole trace is answered from the table of threads; in a window, the question about a few
//! threads reads their rows, and the question about all is a plan of SQL: each against sums of the intervals as they were made.

use std::collections::BTreeMap;

use crate::support::Little;
use serde_json::json;
use sigmund_query::{Filter, active_time};
use sigmund_sql::SuperTrace;

#[path = "../../../measures/tests/it/support/random.rs"]
mod random;

use random::Random;

/// Thread and interval.
type Interval = (u64, u64, u64);

/// Threads with gaps in their numbers, not all of which execute, whose intervals are in row groups of 16 and two files.
fn random_trace(random: &mut Random) -> (Little, Vec<u64>, Vec<Interval>) {
    let mut little = Little::new();
    little.rows_per_group = 16;
    let threads: Vec<u64> = (0..random.below(40) as u64 + 1).map(|n| n * 3 + 1).collect();
    let mut intervals = Vec::new();
    let mut clock = 1000;
    for thread in &threads {
        if random.one_in(6) {
            continue;
        }
        clock += random.below(50) as u64;
        let mut tick = clock;
        for _ in 0..random.below(30) {
            tick += random.below(20) as u64;
            let end = tick + random.below(100) as u64;
            intervals.push((*thread, tick, end));
            tick = end;
        }
    }
    for thread in &threads {
        let own = || intervals.iter().filter(|i| i.0 == *thread);
        let from = own().map(|i| i.1).min().unwrap_or(900) - random.below(30) as u64;
        let to = own().map(|i| i.2).max().unwrap_or(950) + random.below(30) as u64;
        let length = (!random.one_in(4)).then_some(to - from);
        let name = (!random.one_in(3)).then(|| format!("n{}", thread % 5));
        let active: u64 = own().map(|i| i.2 - i.1).sum();
        little.row(
            "threads",
            json!({"thread": thread, "name": name, "ts_tick": from, "dur_tick": length, "active_tick": active}),
        );
    }
    intervals.sort_by_key(|i| (i.1, i.0));
    for (n, (thread, from, to)) in intervals.iter().enumerate() {
        if n == intervals.len() / 2 {
            little.next_part("active");
        }
        little.row(
            "active",
            json!({"ts_tick": from, "dur_tick": to - from, "thread": thread, "lwp": 7, "cpu": 0}),
        );
    }
    little.info("first_tick", 800).info("last_tick", 10_000);
    (little, threads, intervals)
}

/// What `active_time` should find of these threads.
fn expected(threads: &[u64], intervals: &[Interval], (from, to): (u64, u64)) -> BTreeMap<u64, u64> {
    let sum = |thread: &u64| {
        let inside = |i: &Interval| i.2.min(to).saturating_sub(i.1.max(from));
        (*thread, intervals.iter().filter(|i| i.0 == *thread).map(inside).sum())
    };
    threads.iter().map(sum).collect()
}

#[tokio::test]
async fn few_threads_and_all_threads_have_the_sums_of_their_intervals() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let (little, threads, intervals) = random_trace(&mut random);
        let trace = SuperTrace::open(little.write()).await.unwrap();
        for ask in 0..6 {
            let few: Vec<u64> = threads.iter().copied().filter(|_| random.one_in(3)).collect();
            let from = 850 + random.below(1500) as u64;
            let window = if ask % 3 == 0 { (0, u64::MAX) } else { (from, from + random.below(1500) as u64) };
            let ask = async |threads: &[u64]| {
                let filter = Filter {
                    threads: threads.iter().map(|thread| thread.to_string().parse().unwrap()).collect(),
                    from: (window.0 > 0).then(|| window.0.to_string().parse().unwrap()),
                    to: (window.1 < u64::MAX).then(|| window.1.to_string().parse().unwrap()),
                    ..Filter::default()
                };
                let found = active_time(&trace, &filter).await.unwrap();
                found.into_iter().map(|row| (row.thread.0, row.active.0)).collect::<BTreeMap<u64, u64>>()
            };
            let all = expected(&threads, &intervals, window);
            assert_eq!(ask(&[]).await, all, "seed {seed}, all, {window:?}");
            if !few.is_empty() {
                assert_eq!(
                    ask(&few).await,
                    expected(&few, &intervals, window),
                    "seed {seed}, {few:?}, {window:?}"
                );
            }
        }
    }
}
