//! The throughput of the drain: `cargo bench -p sigmund-fut --bench drain`.
//!
//! One CPU fills a ring of 4 MiB with records of two parameters, then drains it. Only the draining is timed, including
//! zeroing the packets. Each figure is the median of several rounds. With `/dev/null` as the file, it is the cost of
//! the drain itself; a file on tmpfs adds what the kernel needs to find and fill pages.

use std::{path::Path, time::Instant};

use fut::{Init, drain::Drain, shm::Arena};

fut::events! {
    fn two(a: u64, b: u64);
}

/// A ring of 64 packets has room for 130 000 records of 32 bytes. This is a little less, so that none is lost.
const RECORDS: u64 = 125_000;
const ROUNDS: usize = 51;

fn main() {
    pin_to_one_cpu();
    let folder = Path::new("/dev/shm").join(format!("fut-bench-drain-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, &folder) };
    // SAFETY: as above.
    unsafe { std::env::set_var(fut::ENV_PACKETS, "64") };
    assert!(matches!(fut::init(), Init::Recording));
    let arena = std::fs::read_dir(&folder).expect("the folder").next().expect("an arena").expect("an arena");
    println!("{:<28} {:>10} {:>14}", "the drain to", "GB/s", "ns a record");
    for (name, target) in
        [("/dev/null", Path::new("/dev/null").to_path_buf()), ("tmpfs", folder.join("trace"))]
    {
        let mut drain = if name == "tmpfs" {
            Drain::new(Arena::open(&arena.path()).expect("the arena"), &target)
        } else {
            // The drain creates its file itself, so the null device is opened here.
            let file = std::fs::File::options().write(true).open(&target).expect("the null device");
            Drain::to_file(Arena::open(&arena.path()).expect("the arena"), file, &target)
        }
        .expect("a drain");
        let mut speeds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| round(&mut drain)).collect();
        speeds.sort_by(|a, b| f64::total_cmp(&a.0, &b.0));
        let (speed, cost) = speeds[ROUNDS / 2];
        println!("{name:<28} {speed:>10.2} {cost:>14.2}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// Takes a full ring. Returns GB/s, and ns per record.
fn round(drain: &mut Drain<Arena>) -> (f64, f64) {
    (0..RECORDS).for_each(|i| two(i, i));
    let before = drain.summary().bytes;
    let start = Instant::now();
    while drain.poll().expect("a write") > 0 {}
    let seconds = start.elapsed().as_secs_f64();
    let bytes = (drain.summary().bytes - before) as f64;
    (bytes / seconds / 1e9, seconds * 1e9 * 32.0 / bytes)
}

fn pin_to_one_cpu() {
    // SAFETY: a CPU set is plain bits; all zeros is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: CPU 0 is within the set.
    unsafe { libc::CPU_SET(0, &mut set) };
    // SAFETY: `set` is valid for its size; 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}
