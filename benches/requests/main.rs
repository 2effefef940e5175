//! A program of requests to be recorded: `requests SECONDS`. Clients spawn a user thread for each request, which has spans, takes
//! locks that others want, and yields. A second of it is some 2.7 million events of its own and 90 thousand user threads, so that
//! 30 s make a recording of 10⁸ events: docs/sql.md has how long questions take on it.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Parser;
use fut::sync::Mutex;

const CLIENTS: u64 = 64;
const LOCKS: u64 = 16;

/// Requests as user threads, with spans and locks, to be recorded
#[derive(Parser)]
struct Options {
    /// How long clients make requests
    seconds: u64,
}

fn main() -> std::io::Result<()> {
    let Options { seconds } = Options::parse();
    let runtime = fut::Runtime::builder().lwps(2).build()?;
    println!("{} requests", runtime.run(move || serve(Duration::from_secs(seconds))));
    Ok(())
}

/// Answers requests until the time is over. Returns how many.
fn serve(time: Duration) -> u64 {
    let locks: Arc<Vec<Mutex<u64>>> = Arc::new((0..LOCKS).map(|_| Mutex::new(0)).collect());
    let end = Instant::now() + time;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let locks = Arc::clone(&locks);
            let builder = fut::Builder::new().name(format!("client/{client}"));
            builder.spawn(move || ask(client, end, &locks))
        })
        .collect();
    clients.into_iter().map(|client| client.join().expect("a client panicked")).sum()
}

fn ask(client: u64, end: Instant, locks: &Arc<Vec<Mutex<u64>>>) -> u64 {
    let mut count = 0;
    while Instant::now() < end {
        let locks = Arc::clone(locks);
        let request = move || answer(client * 7 + count, &locks);
        fut::Builder::new().name("request").spawn(request).join().expect("a request panicked");
        count += 1;
        if count.is_multiple_of(64) {
            fut::sleep(Duration::from_micros(100));
        }
    }
    count
}

fn answer(number: u64, locks: &[Mutex<u64>]) {
    let _request = fut::span!("request");
    {
        let _parse = fut::span!("parse");
        compute(Duration::from_nanos(200));
    }
    for step in 0..4 {
        let _look_up = fut::span!("look_up");
        let mut looked_up = locks[((number + step) % LOCKS) as usize].lock();
        *looked_up += 1;
        compute(Duration::from_nanos(100));
        if (number + step).is_multiple_of(16) {
            fut::yield_now();
        }
    }
    fut::yield_now();
    let _reply = fut::span!("reply");
    compute(Duration::from_nanos(100));
}

fn compute(length: Duration) {
    let start = Instant::now();
    while start.elapsed() < length {
        black_box(0);
    }
}
