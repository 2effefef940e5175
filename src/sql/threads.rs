//! The threads of one query of the prompt.

use std::{future::poll_fn, pin::pin};

use anyhow::Result;
use tokio::runtime::Runtime;

/// Threads for what a query does beside its own future. When they are dropped, they end as soon as they can.
///
/// A query that was cancelled keeps its threads until it is done with what it does between two batches. With threads of
/// its own, the next query does not wait for that.
pub(super) struct Threads {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Threads {
    pub(super) fn start() -> Result<Threads> {
        Ok(Threads { runtime: Some(crate::query_threads()?) })
    }

    /// Runs a query, whose tasks run on these threads.
    pub(super) async fn run<T>(&self, query: impl Future<Output = T>) -> T {
        let mut query = pin!(query);
        poll_fn(|context| {
            let _entered = self.runtime.as_ref().map(Runtime::enter);
            query.as_mut().poll(context)
        })
        .await
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Barrier},
        thread,
        time::Duration,
    };

    use tokio::{sync::mpsc, time::timeout};

    use super::*;

    #[test]
    fn a_query_does_not_wait_for_what_a_cancelled_query_does() {
        let count = thread::available_parallelism().unwrap().get();
        // The tasks of the first query, which keep all its threads until the second has ended.
        let is_over = Arc::new(Barrier::new(count + 1));
        crate::query_threads().unwrap().block_on(async {
            let (begun, mut are_begun) = mpsc::unbounded_channel();
            let cancelled = Threads::start().unwrap();
            let keeps_threads = async {
                for _ in 0..count {
                    let (begun, is_over) = (begun.clone(), Arc::clone(&is_over));
                    tokio::spawn(async move {
                        begun.send(()).unwrap();
                        is_over.wait();
                    });
                }
                for _ in 0..count {
                    are_begun.recv().await;
                }
            };
            cancelled.run(keeps_threads).await;
            drop(cancelled);
            let next = Threads::start().unwrap();
            let answer = next.run(async { tokio::spawn(async { 42 }).await.unwrap() });
            let answer = timeout(Duration::from_secs(10), answer).await;
            is_over.wait();
            assert_eq!(answer.ok(), Some(42));
        });
    }
}
