//! The ring, checked: its very code, compiled once more against loom's atomics, with packets of two records.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p fut --release --lib loom`
//!
//! loom runs a producer against the drain, or against a snapshot, in all interleavings of up to two or three
//! preemptions, and in all orders that the memory model allows. Signal handlers are calls: each test runs once for
//! every interruption point that its producer passes, with a handler that records there, and once for every pair of
//! points, the second of which may be in the handler. What the probe itself does (`probe::emit`) is written down here
//! once more, in [`emit`], because there it is made of raw addresses.
//!
//! What was broken on purpose, and seen by these tests: a tick stored Relaxed, or before the head; `released` or `end`
//! stored Relaxed; the packet given back before it is zeros; an opener that takes `cursor + 1` instead of a claim
//! (a handler's record is wiped out); no fence between taking the label off and wiping; no second look at the label.

#[allow(dead_code, unreachable_pub, unused_imports, clippy::duplicate_mod)]
#[path = "."]
mod packets_of_two {
    const RECORDS_IN_PACKET: usize = 2;
    mod discard;
    mod platform;
    mod producer;
    #[path = "../ring/mod.rs"]
    mod ring;
}

/// A snapshot reads so much while it is written that packets of two would take days.
#[allow(dead_code, unreachable_pub, unused_imports, clippy::duplicate_mod)]
#[path = "."]
mod packets_of_one {
    const RECORDS_IN_PACKET: usize = 1;
    mod overwrite;
    mod platform;
    mod producer;
    #[path = "../ring/mod.rs"]
    mod ring;
}
