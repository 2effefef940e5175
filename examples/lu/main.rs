//! A compute kernel with user threads: `cargo run --release --example lu -- [BLOCKS] [BLOCK SIZE] [LWPS]`.
//!
//! Recorded: `sigmund record -- target/release/examples/lu 20 32`. Most of the time is spent between `bmod_begin` and
//! `bmod_end`; `benches/` measures the cost of recording them.

mod matrix;

use std::{env, error::Error, time::Instant};

use fut::Runtime;

use self::matrix::Matrix;

fn main() -> Result<(), Box<dyn Error>> {
    let cpus = std::thread::available_parallelism()?.get();
    let argument =
        |n: usize, default: usize| env::args().nth(n).map_or(Ok(default), |argument| argument.parse());
    let (blocks, size, lwps) = (argument(1, 50)?, argument(2, 64)?.max(1), argument(3, cpus)?);

    let runtime = Runtime::builder().lwps(lwps).build()?;
    let (elapsed, factorised) = runtime.run(move || {
        let mut matrix = Matrix::new(blocks, size);
        let start = Instant::now();
        matrix.factorise();
        (start.elapsed(), matrix)
    });
    let mut alone = Matrix::new(blocks, size);
    let start = Instant::now();
    alone.factorise_alone();
    println!(
        "{blocks} × {blocks} blocks of {size} × {size}: {elapsed:?} on {lwps} LWPs, {:?} without threads",
        start.elapsed()
    );
    if factorised == alone { Ok(()) } else { Err("the results differ".into()) }
}
