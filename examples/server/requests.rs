//! Requests, each a user thread with spans.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use fut::sync::Mutex;

/// One in this number of requests finds the cache empty.
const EMPTY_EVERY: u32 = 40;

/// Answers `number` requests, several at a time, and returns their number.
pub(crate) fn serve(number: u32) -> u64 {
    let cache = Arc::new(Mutex::new(0));
    for first in (0..number).step_by(20) {
        let requests: Vec<_> = (first..number.min(first + 20))
            .map(|request| {
                let cache = Arc::clone(&cache);
                fut::Builder::new().name("request").spawn(move || answer(request, &cache))
            })
            .collect();
        for request in requests {
            request.join().expect("a request panicked");
        }
    }
    *cache.lock()
}

fn answer(request: u32, cache: &Mutex<u64>) {
    let _request = fut::span!("request");
    {
        let _parse = fut::span!("parse");
        compute(Duration::from_micros(20));
    }
    {
        let _look_up = fut::span!("look_up");
        let mut cached = cache.lock();
        *cached += 1;
        if request % EMPTY_EVERY == EMPTY_EVERY / 2 {
            fill();
        }
    }
    let _reply = fut::span!("reply");
    fut::sleep(Duration::from_micros(100));
}

/// Lets others run meanwhile, who find the lock held: on a busy machine, too, where one LWP runs at a time.
#[fut::trace]
fn fill() {
    for _ in 0..20 {
        compute(Duration::from_micros(100));
        fut::yield_now();
    }
}

fn compute(length: Duration) {
    let start = Instant::now();
    while start.elapsed() < length {
        black_box(0);
    }
}
