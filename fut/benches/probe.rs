//! What a probe costs, beside what reading the clock costs: `cargo bench -p fut --bench probe`.
//!
//! Pinned to one CPU, in bursts that fit into the ring, so that nothing is lost and the drain does not run beside it.
//! Each figure is the median of several bursts, in ticks of the TSC.

use std::{hint::black_box, time::Duration};

use fut::{Recording, clock::ticks, keys, shm::Geometry};

fut::events! {
    fn none();
    fn two(a: u64, b: u64);
    fn six(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64);
    fn text(number: u64, what: &str);
    /// On a key of its own, which is switched off.
    fn switched_off(a: u64, b: u64) in OFF;
}

const OFF: u64 = 1 << 40;
/// A ring of 4 MiB holds 65536 records of 64 bytes.
const BURST: u64 = 40_000;
const BURSTS: usize = 31;

fn main() {
    pin_to_one_cpu();
    let folder = std::env::temp_dir().join(format!("fut-bench-{}", std::process::id()));
    let recording = Recording::start(&folder, Geometry::default()).expect("a recording");
    keys::set(!OFF).expect("switched");
    none();

    let mut buffer = vec![0_u64; 4 * BURST as usize];
    let clock = measure(|_| _ = black_box(ticks()));
    println!("{:<34} {:>8} {:>8}", "", "ticks", "× rdtsc");
    let row = |name: &str, cost: f64| println!("{name:<34} {cost:>8.1} {:>8.2}", cost / clock);
    row("rdtsc", clock);
    let stores = |i: u64| {
        let place = (4 * i) as usize;
        buffer[place..place + 4].copy_from_slice(&[ticks(), i, i, i]);
    };
    row("rdtsc + 32 bytes", measure(stores));
    row("probe, no parameter", measure(|_| none()));
    row("probe, 2 parameters", measure(|i| two(i, i)));
    row("probe, 6 parameters", measure(|i| six(i, i, i, i, i, i)));
    row("probe, a number and a short text", measure(|i| text(i, black_box("received"))));
    row("probe, switched off", measure(|i| switched_off(i, i)));
    let summary = recording.finish().expect("the trace");
    println!("{} records lost", summary.lost);
    let _ = std::fs::remove_file(folder);
}

/// Ticks for one call, the median of several bursts.
fn measure(mut probe: impl FnMut(u64)) -> f64 {
    let mut costs: Vec<f64> = (0..BURSTS)
        .map(|_| {
            // The drain empties the ring meanwhile.
            std::thread::sleep(Duration::from_millis(12));
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
    // SAFETY: `set` is valid for its size; 0 is the calling thread. The drain's thread inherits it, and runs while
    // the bursts sleep.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}
