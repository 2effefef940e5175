//! Probes: the places in a program that record an event.
//!
//! What a probe does when it is on: test the key mask, find the ring of its LWP, read the TSC and the CPU number,
//! reserve with one `xadd`, store. No lock, no system call, no allocation, no loop. `shm::ring` has the protocol.

mod current;
mod emit;
mod event;
pub mod keys;
mod param;

pub(crate) use current::{CURRENT_NONE, clear_current, cpu_number, current, set_current};
pub use emit::record;
pub use event::EventDecl;
pub(crate) use event::declared;
pub use param::{Fields, Param};

#[doc(hidden)]
pub use event::DECLARED;
