//! The cost of spans and traced functions, begin and end together, compared with reading the clock: `taskset -c 0 cargo
//! bench -p sigmund-fut --bench span`.
//!
//! Bursts fit into the ring, with time for the drain in between. The figures are medians, in ticks of the TSC.

use std::{hint::black_box, time::Duration};

use fut::{Recording, clock::ticks, keys, shm::Geometry};

const BURST: u64 = 20_000;
const BURSTS: usize = 31;

#[fut::trace]
#[inline(never)]
fn traced(number: u64) -> u64 {
    black_box(number)
}

#[inline(never)]
fn plain(number: u64) -> u64 {
    black_box(number)
}

fn main() {
    let path = std::env::temp_dir().join(format!("fut-bench-span-{}", std::process::id()));
    let recording = Recording::start(&path, Geometry::default()).expect("a recording");
    row("rdtsc", |_| _ = black_box(ticks()));
    row("a plain function", |i| _ = plain(i));
    row("a traced function", |i| _ = traced(i));
    row("a span", |_| drop(fut::span!("span")));
    row("a span with a field", |i| drop(fut::span!(counted, number: u64 = i)));
    keys::set(!keys::SPANS & !keys::FUNCTIONS).expect("switched");
    row("a traced function, switched off", |i| _ = traced(i));
    row("a span, switched off", |_| drop(fut::span!("span")));
    let summary = recording.finish().expect("the trace");
    println!("{} records lost", summary.lost);
    let _ = std::fs::remove_file(path);
}

/// Prints the ticks of one call, the median of several bursts.
fn row(name: &str, mut probe: impl FnMut(u64)) {
    let mut costs: Vec<f64> = (0..BURSTS)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(12));
            let start = ticks();
            (0..BURST).for_each(&mut probe);
            (ticks() - start) as f64 / BURST as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("{name:<34} {:>8.1}", costs[BURSTS / 2]);
}
