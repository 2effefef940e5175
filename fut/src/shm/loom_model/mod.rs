//! The ring, checked: its very code, compiled once more against loom's atomics, with packets of two records.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p fut --release --lib loom`
//!
//! loom runs a producer against the drain (in all interleavings of up to three preemptions, two with a handler), or
//! against a snapshot (one preemption, none with a handler: whoever is slower has been overtaken as a whole, or still sees
//! old values), and in all orders that the memory model allows. Signal handlers are calls: each test runs once for every
//! interruption point that its producer passes, with a handler that records there, and once for every pair of points, the
//! second of which may be in the handler. What the probe itself does (`probe::emit`) is written down once more, in
//! `producer::emit`, because there it is made of raw addresses. It takes about a minute.
//!
//! What was broken on purpose, and seen by these tests: a tick that is stored Relaxed, or before the head; `released`
//! stored Relaxed, or before the packet is zeros; the cursor moved Relaxed; an opener that takes the packet after the
//! cursor instead of a claim (it wipes out what a handler recorded); no fence between taking the label off and wiping; no
//! second look at the label. An `xadd` that is not a release showed a record without the one before it in a snapshot.
//! Not seen: `end` stored Relaxed, because the cursor and the ticks publish what it does.

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
