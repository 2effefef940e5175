//! fut: user threads with stacks, recorded or not.

#[path = "../../../examples/lu/matrix.rs"]
mod matrix;

use std::{
    io::{self, Read, Write},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use fut::{Runtime, RuntimeBuilder};

use self::matrix::Matrix;
use super::{
    messages::user_threads,
    threads::{UserThreads, second_time},
};
use crate::{
    echo::{MESSAGE, Meter},
    recorded::Events,
    work::Work,
};

fut::events! {
    /// A thread of the tree begins, with this number of levels below it.
    fn node_begin(height: u32) => "{height} levels below";
    /// A thread of the tree ends, with this sum.
    fn node_end(height: u32, sum: u64) => "{height} levels below, sum {sum}";
}

struct Fut;

impl UserThreads for Fut {
    type Handle<T> = fut::JoinHandle<T>;

    #[inline]
    fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Self::Handle<T> {
        fut::spawn(body)
    }

    #[inline]
    fn join<T>(handle: Self::Handle<T>) -> T {
        handle.join().expect("a user thread panicked")
    }

    #[inline]
    fn yield_now() {
        fut::yield_now();
    }

    #[inline]
    fn node_begin(height: u32) {
        node_begin(height);
    }

    #[inline]
    fn node_end(height: u32, sum: u64) {
        node_end(height, sum);
    }
}

/// Options for a runtime whose user threads move between LWPs.
pub(super) fn migrating() -> RuntimeBuilder {
    // SAFETY: the user threads of `run` keep no state of an LWP across a call that can switch: they spawn, join, yield,
    // compute on memory that they own or borrow from another user thread, and record events.
    unsafe { Runtime::builder().migrating() }
}

/// Only the second run is recorded, because only that is timed.
pub(super) fn run(builder: RuntimeBuilder, work: Work, cpus: usize, events: Events) -> io::Result<Duration> {
    let runtime = builder.lwps(cpus).build()?;
    events.pause();
    Ok(runtime.run(move || {
        let elapsed = match work {
            Work::Factorise { blocks, size } => factorise(blocks, size, events),
            Work::Messages { means, times } => {
                user_threads::once(means, times);
                events.resume();
                let start = Instant::now();
                user_threads::once(means, times);
                start.elapsed()
            }
            _ => second_time::<Fut>(work, || events.resume()),
        };
        events.pause();
        elapsed
    }))
}

fn factorise(blocks: usize, size: usize, events: Events) -> Duration {
    let new = || Matrix::new(blocks, size);
    let (mut first, mut second, mut alone) = (new(), new(), new());
    first.factorise();
    events.resume();
    let start = Instant::now();
    second.factorise();
    let elapsed = start.elapsed();
    events.pause();
    alone.factorise_alone();
    assert!(first == alone && second == alone, "the threads found another result than one alone");
    elapsed
}

/// An echo server with a user thread for each connection.
pub(super) fn echo(
    builder: RuntimeBuilder,
    listener: TcpListener,
    connections: u64,
    meter: Arc<Meter>,
    cpus: usize,
    _events: Events,
) {
    let runtime = builder.lwps(cpus).build().expect("a runtime");
    runtime.run(move || {
        let listener = fut::net::TcpListener::from_std(listener).expect("the listener");
        let serve = |_| {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.as_std().set_nodelay(true).expect("the connection");
            let meter = Arc::clone(&meter);
            fut::spawn(move || {
                let mut message = [0; MESSAGE];
                while stream.read_exact(&mut message).is_ok() {
                    meter.request();
                    stream.write_all(&message).expect("the client reads");
                }
            })
        };
        let all: Vec<_> = (0..connections).map(serve).collect();
        all.into_iter().for_each(|one| one.join().expect("a user thread panicked"));
    });
}
