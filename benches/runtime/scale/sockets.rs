//! Many sockets in one process: pairs of Unix sockets, each end with a user thread or task. One end sends messages, one at
//! a time, and waits for the echo of the other.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use fut::{RuntimeBuilder, net::UnixStream, sync::Barrier};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{io::AsyncReadExt, io::AsyncWriteExt, runtime::Builder, sync, task};

use super::{Stopwatch, resident};
use crate::{echo::MESSAGE, sample::Sample};

/// What happens to all sockets, in this order.
pub(crate) const STEPS: [&str; 3] = ["open and spawn", "message and echo", "close and join"];

/// Echoes on each pair.
pub(crate) fn rounds(sockets: u64, step: usize) -> u64 {
    if step == 1 { (100_000 / sockets).max(4) } else { 1 }
}

/// Descriptors beside the sockets.
const OTHERS: u64 = 100;

/// Raises the limit of open files, the hard one, too, if this process may.
fn allow(sockets: u64) -> Result<(), String> {
    let wanted = sockets + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).map_err(|error| {
        format!("{wanted} descriptors are needed, and the limit cannot be raised (ulimit -n): {error}")
    })
}

pub(crate) fn run(builder: RuntimeBuilder, sockets: u64, lwps: usize) -> Result<Sample, String> {
    allow(sockets)?;
    let runtime = builder.lwps(lwps).build().map_err(|error| error.to_string())?;
    let all = move || -> io::Result<Sample> {
        let stopwatch = Arc::new(Stopwatch::start());
        let barrier = Arc::new(Barrier::new(sockets as usize));
        let mut threads = Vec::new();
        for _ in 0..sockets / 2 {
            let (asks, echoes) = UnixStream::pair()?;
            for (mut stream, begins) in [(asks, true), (echoes, false)] {
                let (barrier, stopwatch) = (Arc::clone(&barrier), Arc::clone(&stopwatch));
                threads.push(fut::spawn(move || -> io::Result<u64> {
                    let end_of_step = || {
                        let is_last = barrier.wait().is_leader();
                        if is_last {
                            stopwatch.lap();
                        }
                        is_last
                    };
                    end_of_step();
                    let mut message = [7; MESSAGE];
                    for _ in 0..rounds(sockets, 1) {
                        if begins {
                            stream.write_all(&message)?;
                        }
                        stream.read_exact(&mut message)?;
                        if !begins {
                            stream.write_all(&message)?;
                        }
                    }
                    Ok(if end_of_step() { resident() } else { 0 })
                }));
            }
        }
        let ended = threads.into_iter().map(|one| one.join().expect("a user thread panicked"));
        let memory = ended.sum::<io::Result<u64>>()?;
        Ok(stopwatch.stop(0, memory))
    };
    runtime.run(all).map_err(|error| error.to_string())
}

/// The same by tokio.
pub(crate) fn run_tokio(sockets: u64, workers: Option<usize>) -> Result<Sample, String> {
    allow(sockets)?;
    let mut builder = workers.map_or_else(Builder::new_current_thread, |_| Builder::new_multi_thread());
    let runtime = builder.worker_threads(workers.unwrap_or(1)).enable_io().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let all = async move {
        let stopwatch = Arc::new(Stopwatch::start());
        let barrier = Arc::new(sync::Barrier::new(sockets as usize));
        let mut tasks = Vec::new();
        for _ in 0..sockets / 2 {
            let (asks, echoes) = tokio::net::UnixStream::pair()?;
            for (mut stream, begins) in [(asks, true), (echoes, false)] {
                let (barrier, stopwatch) = (Arc::clone(&barrier), Arc::clone(&stopwatch));
                tasks.push(task::spawn(async move {
                    let end_of_step = async || {
                        let is_last = barrier.wait().await.is_leader();
                        if is_last {
                            stopwatch.lap();
                        }
                        is_last
                    };
                    end_of_step().await;
                    let mut message = [7; MESSAGE];
                    for _ in 0..rounds(sockets, 1) {
                        if begins {
                            stream.write_all(&message).await?;
                        }
                        stream.read_exact(&mut message).await?;
                        if !begins {
                            stream.write_all(&message).await?;
                        }
                    }
                    io::Result::Ok(if end_of_step().await { resident() } else { 0 })
                }));
            }
        }
        let mut memory = 0;
        for one in tasks {
            memory += one.await.expect("a task panicked")?;
        }
        io::Result::Ok(stopwatch.stop(0, memory))
    };
    let sample = runtime.block_on(async { task::spawn(all).await.expect("the first task panicked") });
    sample.map_err(|error| error.to_string())
}
