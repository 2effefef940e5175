//! The work for runtimes whose user threads have stacks: one implementation, in which only spawn, join and yield
//! differ.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use crate::work::Work;

/// The interface of a runtime for its user threads.
pub(super) trait UserThreads: 'static {
    type Handle<T>;

    fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Self::Handle<T>;
    fn join<T>(handle: Self::Handle<T>) -> T;
    fn yield_now();

    /// Called at the beginning and end of a thread of Sumtime.
    fn node_begin(_height: u32) {}
    fn node_end(_height: u32, _sum: u64) {}
}

/// Does `work` twice and times the second run: the first fills caches, pools and heaps. Called by a user thread.
pub(super) fn second_time<R: UserThreads>(work: Work, before_second: impl FnOnce()) -> Duration {
    once::<R>(work);
    before_second();
    let start = Instant::now();
    once::<R>(work);
    start.elapsed()
}

fn once<R: UserThreads>(work: Work) {
    match work {
        Work::Yield { threads, yields } => {
            let body = move || (0..yields / threads).for_each(|_| R::yield_now());
            let all: Vec<_> = (0..threads).map(|_| R::spawn(body)).collect();
            all.into_iter().for_each(R::join);
        }
        Work::SpawnJoin { times } => {
            for i in 0..times {
                assert_eq!(R::join(R::spawn(move || black_box(i))), i);
            }
        }
        Work::SpawnMany { at_once, rounds } => {
            for _ in 0..rounds {
                let all: Vec<_> = (0..at_once).map(|i| R::spawn(move || black_box(i))).collect();
                all.into_iter().for_each(|one| _ = R::join(one));
            }
        }
        Work::Sumtime { height, trees } => {
            for _ in 0..trees {
                assert_eq!(R::join(R::spawn(move || node::<R>(height))), 1 << height);
            }
        }
        _ => unreachable!("not for every runtime"),
    }
}

fn node<R: UserThreads>(height: u32) -> u64 {
    R::node_begin(height);
    let sum = if height == 0 {
        1
    } else {
        let left = R::spawn(move || node::<R>(height - 1));
        let right = R::spawn(move || node::<R>(height - 1));
        R::join(left) + R::join(right)
    };
    R::node_end(height, sum);
    sum
}
