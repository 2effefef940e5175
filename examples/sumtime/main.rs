//! Sumtime as a program: `cargo run --release --example sumtime -- [HEIGHT] [LWPS] [WORK]`.
//!
//! Recorded: `sigmund record -- target/release/examples/sumtime 10`.

mod tree;

use std::{env, io, time::Instant};

fn main() -> io::Result<()> {
    let argument =
        |n: usize, default: u32| env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let cpus = std::thread::available_parallelism()?.get() as u32;
    let (height, lwps, work) = (argument(1, 10), argument(2, cpus), argument(3, 1000));
    let start = Instant::now();
    let sum = tree::run(height, lwps as usize, work)?;
    println!("sum {sum} of {} user threads on {lwps} LWPs in {:?}", (2_u64 << height) - 1, start.elapsed());
    Ok(())
}
