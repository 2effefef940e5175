//! async-executor, the executor of smol: stackless tasks.

use std::{thread, time::Duration};

use async_executor::Executor;
use futures_lite::future;

use super::tasks::{Tasks, second_time};
use crate::work::Work;

static EXECUTOR: Executor<'static> = Executor::new();

struct Smol;

impl Tasks for Smol {
    #[inline]
    fn spawn<T: Send + 'static>(
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        EXECUTOR.spawn(task)
    }

    #[inline]
    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        future::yield_now()
    }
}

pub(super) fn run(work: Work, cpus: usize) -> Duration {
    for _ in 1..cpus {
        // The thread ends with the process.
        thread::spawn(|| future::block_on(EXECUTOR.run(future::pending::<()>())));
    }
    future::block_on(EXECUTOR.run(Smol::spawn(second_time::<Smol>(work))))
}
