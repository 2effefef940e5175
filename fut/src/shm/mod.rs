//! The shared memory of a traced process: where probes write and the drain reads.
//!
//! One piece of memory for a process, the **arena**, mapped by the process and by whoever records it. So a program
//! that is killed loses nothing that it had committed: the recorder holds the same pages. The recorder makes the memory and
//! seals it (`arena/memory.rs`), and trusts nothing that it reads in it (`arena/mod.rs`).
//!
//! ```text
//! arena   0        4 KiB           20 KiB             1 MiB    + ring length …
//!         | head   | ring states   | metadata packets | ring 0 | ring 1 | …
//!
//! ring    0        64 KiB
//!         | control | packet 0 | packet 1 | … | packet n-1 |        each packet 64 KiB, head included
//! ```
//! Pages that were never touched take no memory.

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
