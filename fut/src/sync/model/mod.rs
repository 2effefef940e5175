//! Models: loom runs them in every interleaving, and with every value that an atomic may give.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p fut --release --lib loom`

mod locks;
pub(super) mod runtime;
mod waits;

use std::time::Instant;

/// A deadline that has passed. The waiter queues all the same, and gives up when it first looks, which loom places
/// before, between and after all that others do: so this is every race between a deadline and a hand-over.
fn passed() -> Instant {
    Instant::now()
}

/// All interleavings with up to `preemptions` switches that a thread did not ask for; `None`: all there are.
fn check(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions.or(model.preemption_bound);
    model.check(move || {
        runtime::forget_all();
        body();
    });
}
