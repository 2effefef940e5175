//! How long a user thread waits for its turn beside one that computes for ever: with safe points, which end its quantum, or
//! without, so that others have to go to another LWP.

use std::{
    hint::spin_loop,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fut::{Builder, Policy, RuntimeBuilder};

use crate::sample::Sample;

/// How long it is measured.
const LENGTH: Duration = Duration::from_secs(1);
/// Between two safe points of the thread that computes.
const STRETCH: Duration = Duration::from_micros(5);

/// The waits of a thread that yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) count: u64,
    pub(crate) mean_ns: u64,
    pub(crate) longest_ns: u64,
}

/// With safe points: one thread yields on the very LWP of the one that computes. Without: one is queued behind it again and
/// again, while another yields on each other LWP, so that none is idle and looks for work.
pub(crate) fn run(
    builder: RuntimeBuilder,
    lwps: usize,
    quantum_us: u64,
    safe_points: bool,
) -> io::Result<Sample> {
    let policy = if safe_points { Policy::Affinity } else { Policy::WorkStealing };
    let mut builder = builder.lwps(lwps).policy(policy);
    if quantum_us > 0 {
        builder = builder.quantum(Duration::from_micros(quantum_us));
    }
    let runtime = builder.build()?;
    let waits =
        runtime.run(move || if safe_points { beside_safe_points() } else { behind_no_safe_points(lwps) });
    let waits = waits.ok_or_else(|| io::Error::other("a thread was never dispatched"))?;
    Ok(Sample { waits: Some(waits), ..Sample::of(LENGTH) })
}

fn beside_safe_points() -> Option<Waits> {
    let done = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&done);
    let computes = Builder::new().lwp(0).spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            compute(STRETCH);
            fut::checkpoint();
        }
    });
    let yields = Builder::new().lwp(0).spawn(|| {
        let start = Instant::now();
        let mut waits = Vec::new();
        while start.elapsed() < LENGTH {
            let begin = Instant::now();
            fut::yield_now();
            waits.push(begin.elapsed());
        }
        waits
    });
    let waits = yields.join().expect("a user thread panicked");
    done.store(true, Ordering::Relaxed);
    computes.join().expect("a user thread panicked");
    Waits::of(&waits)
}

fn behind_no_safe_points(lwps: usize) -> Option<Waits> {
    let done = Arc::new(AtomicBool::new(false));
    let mut others = Vec::new();
    for _ in 1..lwps {
        let (begun, done) = (Arc::new(AtomicBool::new(false)), Arc::clone(&done));
        let begins = Arc::clone(&begun);
        others.push(fut::spawn(move || {
            begins.store(true, Ordering::Relaxed);
            while !done.load(Ordering::Relaxed) {
                fut::yield_now();
            }
        }));
        // Without a safe point, so that it begins on another LWP.
        while !begun.load(Ordering::Relaxed) {
            spin_loop();
        }
    }
    let (start, mut waits) = (Instant::now(), Vec::new());
    while start.elapsed() < LENGTH {
        let begin = Instant::now();
        let dispatched = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&dispatched);
        others.push(fut::spawn(move || seen.store(true, Ordering::Relaxed)));
        while !dispatched.load(Ordering::Relaxed) && start.elapsed() < 5 * LENGTH {
            spin_loop();
        }
        if !dispatched.load(Ordering::Relaxed) {
            // What follows lets it run.
            done.store(true, Ordering::Relaxed);
            return None;
        }
        waits.push(begin.elapsed());
    }
    done.store(true, Ordering::Relaxed);
    others.into_iter().for_each(|one| one.join().expect("a user thread panicked"));
    Waits::of(&waits)
}

fn compute(length: Duration) {
    let start = Instant::now();
    while start.elapsed() < length {
        spin_loop();
    }
}

impl Waits {
    fn of(waits: &[Duration]) -> Option<Waits> {
        let longest = waits.iter().max()?;
        let sum: Duration = waits.iter().sum();
        let mean_ns = sum.as_nanos() as u64 / waits.len() as u64;
        Some(Waits { count: waits.len() as u64, mean_ns, longest_ns: longest.as_nanos() as u64 })
    }
}
