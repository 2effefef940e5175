//! `critical-sections`, drawn by hand, and on random machines against comparing every hold with every other.

use std::collections::BTreeMap;

use crate::support::damage::some_damaged;
use crate::support::drawing::{Drawing, listing};
use sigmund_measures::{Answer, By, Distribution, History, Interval, LockRequest, Request, named};
use sigmund_model::EndReason;

const COLUMNS: &str = "depth count total_tick p50_tick max_tick";

fn ask(history: &History, request: &Request) -> Answer {
    named("critical-sections").unwrap().answer(history, request).unwrap()
}

//           0   10   20   30   40   50   60   70   80
// thread 1      |A=============================|          depth 0
//                   |B========|                           depth 1
//                         |C=======|                      depth 2: B is not released yet
//                                  |B====|                depth 1: C was released at that tick
//                                                   |A|   depth 0, length 0 at 80
// thread 2           |D=====|                             depth 0
// E: taken by thread 1 at 15, its release is missing.
fn drawn() -> History {
    let mut drawing = Drawing::default();
    for thread in [1, 2] {
        drawing.thread(thread, ["one", "two"][thread as usize - 1], &[], 100);
    }
    for (object, acquired, hold) in [(0xa, 10, 60), (0xb, 20, 20), (0xc, 30, 20), (0xb, 50, 15), (0xa, 80, 0)]
    {
        drawing.mutex(1, object, (acquired, 0, hold), "f");
    }
    // It waits from 15 on.
    drawing.mutex(2, 0xd, (15, 7, 15), "g at g.c:7");
    drawing.mutex(1, 0xe, (15, 0, 0), "f");
    let missing = drawing.edit().locks.last_mut().unwrap();
    (missing.hold, missing.end) = (None, EndReason::Unseen);
    drawing.build(100)
}

#[test]
fn depth_is_what_the_same_thread_holds_at_the_acquisition() {
    let history = drawn();
    let by_lock = ask(&history, &Request::default());
    assert_eq!(
        listing(&by_lock, &format!("process object {COLUMNS}")),
        ["70 10 0 2 60 0 60", "70 11 1 2 35 15 20", "70 12 2 1 20 20 20", "70 13 0 1 15 15 15"]
    );
    let by = |by, window| ask(&history, &Request { by: Some(by), window, ..Request::default() });
    assert_eq!(
        listing(&by(By::Thread, Interval::ALL), &format!("thread {COLUMNS}")),
        ["1 0 2 60 0 60", "1 1 2 35 15 20", "1 2 1 20 20 20", "2 0 1 15 15 15"]
    );
    // Cut: A 20, B 5 and 5, C 15; D 2.
    assert_eq!(
        listing(&by(By::Name, Interval::new(35, 55)), &format!("name {COLUMNS}")),
        ["one 0 1 20 20 20", "one 1 2 10 5 5", "one 2 1 15 15 15", "two 0 1 2 2 2"]
    );
    let g = Request { subject: Some("g".into()), ..Request::default() };
    assert_eq!(listing(&ask(&history, &g), "object count"), ["13 1"]);
}

fn acquired(lock: &LockRequest) -> i64 {
    lock.tick + lock.wait.unwrap()
}

#[test]
fn lengths_and_depths_are_those_of_comparing_all_pairs() {
    for seed in 0..300 {
        let mut history = some_damaged(seed).history().1;
        crate::support::locks::add_locks(&mut history, seed);
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let held: Vec<(usize, &LockRequest, i64)> = history
            .locks
            .iter()
            .enumerate()
            .filter_map(|(place, lock)| Some((place, lock, acquired(lock) + lock.hold?)))
            .collect();
        let mut expected: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut sum = 0;
        for (place, lock, end) in &held {
            let from = acquired(lock);
            let is_around = |(other_place, other, other_end): &&(usize, &LockRequest, i64)| {
                let same = other.thread == lock.thread && (lock.thread.is_some() || other.lwp == lock.lwp);
                same && (acquired(other), *other_place) < (from, *place) && *other_end > from
            };
            let depth = held.iter().filter(is_around).count();
            let whole = Interval::new(from, *end);
            if let Some(cut) = whole.clipped(window) {
                expected.entry(format!("{} {depth}", lock.object)).or_default().push(cut.ticks());
                sum += whole.overlap(window);
            }
        }
        let expected: Vec<String> = expected
            .into_iter()
            .map(|(key, lengths)| {
                let lengths: Distribution = lengths.into_iter().collect();
                let [p50, max] = [50.0, 100.0].map(|percent| lengths.percentile(percent).unwrap());
                format!("{key} {} {} {p50} {max}", lengths.count(), lengths.total())
            })
            .collect();
        let request = Request { window, ..Request::default() };
        let answer = ask(&history, &request);
        // The process of a lock is that of who asks; all are of 70.
        let mut found = listing(&answer, &format!("object {COLUMNS}"));
        found.sort();
        let mut expected = expected;
        expected.sort();
        assert_eq!(found, expected, "seed {seed}");
        let totals = listing(&answer, "total_tick");
        assert_eq!(totals.iter().map(|total| total.parse::<i64>().unwrap()).sum::<i64>(), sum);
    }
}
