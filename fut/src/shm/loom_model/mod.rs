//! Checks the ring: the same code, compiled again with loom's atomics and packets of two records.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sigmund-fut --release --lib loom`
//!
//! loom runs a producer against the drain (in all interleavings of up to three preemptions, two with a handler), or
//! against a snapshot (one preemption, none with a handler: the slower side has been overtaken completely, or still
//! sees old values), and in all orders that the memory model allows. Signal handlers are calls: each test runs once for
//! every interruption point that its producer passes, with a handler that records there, and once for every pair of
//! points, the second of which may be in the handler. The code of the probe (`probe::emit`) is repeated in
//! `producer::emit`, because the original uses raw addresses. It takes about a minute.
//!
//! Faults introduced on purpose and detected by these tests: a tick stored Relaxed, or before the header; `released`
//! stored Relaxed, or before the packet is zeroed; the cursor moved Relaxed; an opener that takes the packet after the
//! cursor instead of a claim (it erases what a handler recorded); no fence between clearing the label and zeroing; no
//! second check of the label. With an `xadd` that is not a release, a snapshot had a record without its predecessor.
//! Not detected: `end` stored Relaxed, because the cursor and the ticks publish the same data.

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

/// During writes, a snapshot reads many words; with packets of two records, the model would take days.
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
