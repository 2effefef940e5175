//! tokio: stackless tasks, on one thread or on several.

use std::{
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::{Builder, Runtime},
    task,
};

use super::{
    messages::tasks,
    tasks::{Tasks, second_time},
};
use crate::{
    echo::{MESSAGE, Meter},
    messages::Means,
    work::Work,
};

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
    run(work, Builder::new_current_thread())
}

pub(super) fn run_multi_thread(work: Work, workers: usize) -> Duration {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers);
    run(work, builder)
}

fn run(work: Work, mut builder: Builder) -> Duration {
    let Work::Messages { means, times } = work else {
        let runtime = builder.build().expect("a runtime");
        return runtime.block_on(async { Tokio::spawn(second_time::<Tokio>(work)).await });
    };
    let second_time = async move {
        tasks::once(means, times).await;
        let start = Instant::now();
        tasks::once(means, times).await;
        start.elapsed()
    };
    builder.enable_time();
    // Polling costs tokio something each time that a thread of it finds no task.
    if matches!(means, Means::Signal | Means::Child) {
        builder.enable_io();
    }
    let runtime = builder.build().expect("a runtime");
    runtime.block_on(async { Tokio::spawn(second_time).await })
}

pub(super) fn echo_current_thread(listener: TcpListener, connections: u64, meter: Arc<Meter>) {
    let runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
    echo(listener, connections, meter, &runtime);
}

pub(super) fn echo_multi_thread(listener: TcpListener, connections: u64, meter: Arc<Meter>, workers: usize) {
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_io().build().expect("a runtime");
    echo(listener, connections, meter, &runtime);
}

/// An echo server with a task for each connection.
fn echo(listener: TcpListener, connections: u64, meter: Arc<Meter>, runtime: &Runtime) {
    runtime.block_on(async {
        task::spawn(async move {
            listener.set_nonblocking(true).expect("the listener");
            let listener = tokio::net::TcpListener::from_std(listener).expect("the listener");
            let mut all = Vec::new();
            for _ in 0..connections {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                stream.set_nodelay(true).expect("the connection");
                let meter = Arc::clone(&meter);
                all.push(task::spawn(async move {
                    let mut message = [0; MESSAGE];
                    while stream.read_exact(&mut message).await.is_ok() {
                        meter.request();
                        stream.write_all(&message).await.expect("the client reads");
                    }
                }));
            }
            for one in all {
                one.await.expect("a task panicked");
            }
        })
        .await
        .expect("the server panicked");
    });
}
