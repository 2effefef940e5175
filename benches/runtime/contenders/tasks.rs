//! The work for runtimes of stackless tasks: one implementation, in which only spawn and yield differ.

use std::{
    hint::black_box,
    pin::Pin,
    time::{Duration, Instant},
};

use crate::work::Work;

/// The interface of a runtime for its tasks.
pub(super) trait Tasks: 'static {
    fn spawn<T: Send + 'static>(
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static;
    fn yield_now() -> impl Future<Output = ()> + Send + 'static;
}

/// Does `work` twice and times the second run: the first fills caches, pools and heaps. Run as a task.
pub(super) fn second_time<R: Tasks>(work: Work) -> Pin<Box<dyn Future<Output = Duration> + Send>> {
    Box::pin(async move {
        once::<R>(work).await;
        let start = Instant::now();
        once::<R>(work).await;
        start.elapsed()
    })
}

async fn once<R: Tasks>(work: Work) {
    match work {
        Work::Yield { threads, yields } => {
            let body = move || async move {
                for _ in 0..yields / threads {
                    R::yield_now().await;
                }
            };
            let all: Vec<_> = (0..threads).map(|_| R::spawn(body())).collect();
            for one in all {
                one.await;
            }
        }
        Work::SpawnJoin { times } => {
            for i in 0..times {
                assert_eq!(R::spawn(async move { black_box(i) }).await, i);
            }
        }
        Work::SpawnMany { at_once, rounds } => {
            for _ in 0..rounds {
                let all: Vec<_> = (0..at_once).map(|i| R::spawn(async move { black_box(i) })).collect();
                for one in all {
                    one.await;
                }
            }
        }
        Work::Sumtime { height, trees } => {
            for _ in 0..trees {
                assert_eq!(R::spawn(node::<R>(height)).await, 1 << height);
            }
        }
        _ => unreachable!("not for every runtime"),
    }
}

fn node<R: Tasks>(height: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if height == 0 {
            return 1;
        }
        let left = R::spawn(node::<R>(height - 1));
        let right = R::spawn(node::<R>(height - 1));
        left.await + right.await
    })
}
