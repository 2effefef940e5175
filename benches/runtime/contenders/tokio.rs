//! tokio: stackless tasks, on one thread or on several.

use std::time::Duration;

use tokio::{
    runtime::{Builder, Runtime},
    task,
};

use super::tasks::{Tasks, second_time};
use crate::work::Work;

struct Tokio;

impl Tasks for Tokio {
    #[inline]
    fn spawn<T: Send + 'static>(
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        let handle = task::spawn(task);
        async move { handle.await.expect("a task panicked") }
    }

    #[inline]
    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        task::yield_now()
    }
}

pub(super) fn run_current_thread(work: Work) -> Duration {
    run(work, &Builder::new_current_thread().build().expect("a runtime"))
}

pub(super) fn run_multi_thread(work: Work, workers: usize) -> Duration {
    run(work, &Builder::new_multi_thread().worker_threads(workers).build().expect("a runtime"))
}

fn run(work: Work, runtime: &Runtime) -> Duration {
    runtime.block_on(async { Tokio::spawn(second_time::<Tokio>(work)).await })
}
