//! Sumtime: a complete binary tree of user threads. Each spawns two, joins both, and returns the sum of what they
//! return; a leaf returns 1. The program that the paper measures its runtime with: full M:N, threads that move.

use std::{io, sync::LazyLock};

use fut::{Builder, Runtime};

fut::events! {
    /// A thread of the tree begins: how many levels are below it.
    fn node_begin(height: u32) => "{height} levels below";
    /// It has its sum.
    fn node_end(height: u32, sum: u64) => "{height} levels below, sum {sum}";
}

/// Names of the two threads that have so many levels below them. Made once: a name of its own would cost each thread an
/// allocation.
static NAMES: LazyLock<Vec<[String; 2]>> = LazyLock::new(|| {
    (0..64).map(|height| ["left", "right"].map(|side| format!("{side}/{height}"))).collect()
});

/// Runs a tree with `2^height` leaves on `lwps` LWPs; each leaf computes for about `work` steps. Gives the sum.
#[allow(unsafe_code, reason = "threads that move between LWPs are asked for by a promise")]
pub(crate) fn run(height: u32, lwps: usize, work: u32) -> io::Result<u64> {
    // SAFETY: all that runs in its user threads is `node`. That spawns, joins, computes and records events, and has nothing
    // of an LWP: numbers and handles only.
    let builder = unsafe { Runtime::builder().migrating() };
    let runtime = builder.lwps(lwps).build()?;
    Ok(runtime.run(move || node(height, work)))
}

fn node(height: u32, work: u32) -> u64 {
    node_begin(height);
    let sum = if height == 0 {
        compute(work)
    } else {
        let child =
            |name: &'static String| Builder::new().name(name.as_str()).spawn(move || node(height - 1, work));
        let children = NAMES[height as usize - 1].each_ref().map(child);
        children.into_iter().map(|child| child.join().expect("a thread of the tree panicked")).sum()
    };
    node_end(height, sum);
    sum
}

/// Something that takes time and gives 1.
fn compute(work: u32) -> u64 {
    let mut x = 1_u64;
    for step in 0..u64::from(work) {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
    }
    u64::from(x != 0 || work == 0)
}
