//! The shared memory of a traced process, written by probes and read by the drain.
//!
//! Each process has one piece of memory, the **arena**. It is mapped by the process and by its recorder. So a killed
//! program loses no committed record: the recorder has the same pages mapped. The recorder creates the memory and seals
//! it (`arena/memory.rs`), and trusts nothing that it reads from it (`arena/mod.rs`).
//!
//! ```text
//! arena   0        4 KiB           20 KiB             1 MiB    + ring length …
//!         | header | ring states   | metadata packets | ring 0 | ring 1 | …
//!
//! ring    0        64 KiB
//!         | control | packet 0 | packet 1 | … | packet n-1 |        each packet 64 KiB, header included
//! ```
//! Pages that were never accessed take no memory.

mod arena;
#[cfg(feature = "probes")]
pub(crate) mod local;
#[cfg(all(test, loom))]
mod loom_model;
mod mapping;
mod platform;
pub(crate) mod ring;

#[cfg(feature = "probes")]
pub(crate) use arena::MAX_RINGS;
pub use arena::{Arena, ArenaError, Geometry, Mode, OverwrittenLwps};
pub use platform::PACKET_LEN;
pub use ring::{Ring, RingState};
