//! The cost of a probe in overwrite mode: `cargo bench -p sigmund-fut --bench flight`.
//!
//! The bench is pinned to one CPU. The figures include zeroing the packets, which the producer does: a burst fills ten
//! packets of a ring of 16. They are medians of many bursts, in ticks of the TSC.

use std::hint::black_box;

use fut::{FlightRecorder, clock::ticks, shm::Geometry};

fut::events! {
    fn two(a: u64, b: u64);
    fn six(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64);
}

const BURST: u64 = 20_000;
const BURSTS: usize = 201;

fn main() {
    pin_to_one_cpu();
    let recorder = FlightRecorder::start(Geometry { packets: 16, rings: 2 }).expect("a flight recorder");
    let clock = measure(|_| _ = black_box(ticks()));
    println!("{:<34} {:>8} {:>8}", "", "ticks", "× rdtsc");
    let row = |name: &str, cost: f64| println!("{name:<34} {cost:>8.1} {:>8.2}", cost / clock);
    row("rdtsc", clock);
    row("probe, 2 parameters", measure(|i| two(i, i)));
    row("probe, 6 parameters", measure(|i| six(i, i, i, i, i, i)));
    let path = std::env::temp_dir().join(format!("fut-bench-{}.fut", std::process::id()));
    let start = ticks();
    let summary = recorder.snapshot(&path).expect("a snapshot");
    println!("a snapshot of {} KiB: {} ticks", summary.bytes >> 10, ticks() - start);
    let _ = std::fs::remove_file(path);
}

/// Ticks for one call, the median of several bursts.
fn measure(mut probe: impl FnMut(u64)) -> f64 {
    let mut costs: Vec<f64> = (0..BURSTS)
        .map(|_| {
            let start = ticks();
            (0..BURST).for_each(&mut probe);
            (ticks() - start) as f64 / BURST as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[BURSTS / 2]
}

fn pin_to_one_cpu() {
    // SAFETY: a CPU set is plain bits; all zeros is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: CPU 0 is within the set.
    unsafe { libc::CPU_SET(0, &mut set) };
    // SAFETY: `set` is valid for its size; 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}
