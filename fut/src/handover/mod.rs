//! How a process gets its arena from its recorder. Not how the arena is drained, or what is in it.
//!
//! The recorder listens on a Unix socket (`SOCK_SEQPACKET`) in the folder that
//! [`ENV_ARENA_DIR`](crate::ENV_ARENA_DIR) names. A process connects, and sends nothing. The recorder asks the kernel which process that is
//! (`SO_PEERCRED`), makes sealed memory, answers with one message, and closes the connection:
//!
//! ```text
//! "fut-arena 3"              with one descriptor (SCM_RIGHTS): the memory
//! "fut-arena 3 no: WHY"      with none
//! ```
//! The process maps the memory, closes the descriptor, and keeps none: a program that closes all its descriptors stays
//! recorded. The number is the version of the arena's layout.
//!
//! The recorder has to know when an arena is done with, whatever the process does. So it watches the process (a pidfd), and
//! the memory: the descriptor that it sends is an open file of its own with a lock on it (`flock`), which the kernel
//! releases when the last mapping and the last descriptor of that open file are gone: also when the process becomes another
//! program by `exec`.

#[cfg(feature = "probes")]
mod client;
#[cfg(feature = "drain")]
mod namespace;
#[cfg(feature = "drain")]
mod server;

#[cfg(feature = "probes")]
pub(crate) use client::ask;
#[cfg(feature = "drain")]
pub use namespace::lwps_in_namespace;
#[cfg(feature = "drain")]
pub use server::{ArenaServer, ProcessArena, Unrecorded};

/// Name of the socket in the recorder's folder.
pub(crate) const SOCKET: &str = "arenas";

/// What an answer begins with.
const GREETING: &str = "fut-arena 3";
/// What follows if there is no arena.
const REFUSAL: &str = " no: ";
/// An answer is not longer.
const MAX_ANSWER: usize = 512;
