//! Sumtime: a complete binary tree of user threads. Each spawns two, joins both, and returns the sum of what they
//! return; a leaf returns 1. The paper measures its runtime with this program. Full M:N: threads migrate.

use std::{io, sync::LazyLock};

use fut::{Builder, Runtime};

fut::events! {
    /// A thread of the tree begins; `height` levels are below it.
    fn node_begin(height: u32) => "{height} levels below";
    /// A thread of the tree has its sum.
    fn node_end(height: u32, sum: u64) => "{height} levels below, sum {sum}";
}

/// Names of the two threads at each height, created once, so that naming a thread allocates nothing.
static NAMES: LazyLock<Vec<[String; 2]>> = LazyLock::new(|| {
    (0..64).map(|height| ["left", "right"].map(|side| format!("{side}/{height}"))).collect()
});

/// Runs a tree with `2^height` leaves on `lwps` LWPs; each thread computes `work` steps, an inner node half of them before it
/// creates its children and half after it has joined them. Returns the sum.
#[allow(unsafe_code, reason = "a runtime whose threads migrate is built by an unsafe call")]
pub(crate) fn run(height: u32, lwps: usize, work: u32) -> io::Result<u64> {
    // SAFETY: its user threads run only `node`, which spawns, joins, computes and records events. It holds numbers and
    // handles, and nothing that belongs to an LWP.
    let builder = unsafe { Runtime::builder().migrating() };
    let runtime = builder.lwps(lwps).build()?;
    Ok(runtime.run(move || node(height, work)))
}

fn node(height: u32, work: u32) -> u64 {
    node_begin(height);
    let sum = if height == 0 {
        compute(work)
    } else {
        compute(work / 2);
        let child =
            |name: &'static String| Builder::new().name(name.as_str()).spawn(move || node(height - 1, work));
        let children = NAMES[height as usize - 1].each_ref().map(child);
        let sum =
            children.into_iter().map(|child| child.join().expect("a thread of the tree panicked")).sum();
        compute(work - work / 2);
        sum
    };
    node_end(height, sum);
    sum
}

/// Computes for a while, and returns 1.
fn compute(work: u32) -> u64 {
    let mut x = 1_u64;
    for step in 0..u64::from(work) {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
    }
    u64::from(x != 0 || work == 0)
}
