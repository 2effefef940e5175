//! Checks the ring. The same code is compiled again with loom's atomics and packets of two records.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sigmund-fut --release --lib loom`
//!
//! loom runs a producer against the drain, or against a snapshot, in all orders that the memory model allows. Against
//! the drain it runs all interleavings of up to three preemptions, or two with a handler. Against a snapshot it runs
//! one preemption, or none with a handler: then the slower side has been overtaken completely, or still sees old
//! values.
//!
//! Signal handlers are calls. Each test runs once for every interruption point that its producer passes, with a handler
//! that records there. It also runs once for every pair of points; the second point may be in the handler. The code of
//! the probe (`probe::emit`) is repeated in `producer::emit`, because the original uses raw addresses. The tests take
//! about a minute.
//!
//! These faults were introduced on purpose and detected by these tests: a tick stored Relaxed, or before the header;
//! `released` stored Relaxed, or before the packet is zeroed; the cursor moved Relaxed; an opener that takes the packet
//! after the cursor instead of a claim (it erases what a handler recorded); no fence between clearing the label and
//! zeroing; no second check of the label. With an `xadd` that is not a release, a snapshot had a record without its
//! predecessor. One fault was not detected: `end` stored Relaxed, because the cursor and the ticks publish the same
//! data.

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

/// A snapshot during writes reads many words. With packets of two records, this model would take days.
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
