//! The compute threads, and the times at which the client sends.

use std::{
    hint::black_box,
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fut::{Builder, JoinHandle, checkpoint, yield_now};

/// The computation between two safe points: about this time on an idle CPU.
const UNIT: Duration = Duration::from_micros(10);
/// Units between two yields: a slice of 1 ms.
const UNITS: u32 = 100;

/// A number of rounds of arithmetic.
#[derive(Clone, Copy)]
pub(crate) struct Unit(u32);

impl Unit {
    /// As many rounds as fit into `UNIT` on an idle CPU.
    pub(crate) fn calibrate() -> Unit {
        let rounds = 100_000;
        let time = |_| {
            let start = Instant::now();
            Unit(rounds).compute(1);
            start.elapsed()
        };
        let fastest = (0..50).map(time).min().unwrap_or(UNIT);
        Unit((f64::from(rounds) * UNIT.as_secs_f64() / fastest.as_secs_f64()) as u32)
    }

    /// Steps of a linear congruential generator, each of which needs the one before.
    fn compute(self, seed: u64) -> u64 {
        let step =
            |x: u64, _| x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        black_box((0..self.0).fold(black_box(seed), step))
    }
}

/// The threads that compute until they are stopped.
pub(crate) struct Load {
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Load {
    pub(crate) fn start(threads: u32, unit: Unit) -> Load {
        let done = Arc::new(AtomicBool::new(false));
        let thread = |n| {
            let done = Arc::clone(&done);
            Builder::new().name(format!("work/{n}")).spawn(move || compute(unit, &done))
        };
        let threads = (0..threads).map(thread).collect();
        Load { done, threads }
    }

    pub(crate) fn stop(self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a compute thread panicked");
        }
    }
}

fn compute(unit: Unit, done: &AtomicBool) -> u64 {
    let mut value = 1;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..UNITS {
            value = unit.compute(value);
            checkpoint();
        }
        yield_now();
    }
    value
}

/// Times between two messages: 1 to 9 ms, the same ones for each way.
pub(crate) fn intervals() -> impl Iterator<Item = Duration> {
    // xorshift64
    let next = |x: &u64| {
        let x = x ^ (x << 13);
        let x = x ^ (x >> 7);
        Some(x ^ (x << 17))
    };
    iter::successors(Some(0x2545_F491_4F6C_DD1D), next).map(|x| Duration::from_micros(1000 + x % 8000))
}
