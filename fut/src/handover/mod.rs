//! How a process gets its arena from its recorder. Draining and the layout of the arena are in other modules.
//!
//! The recorder listens on a Unix socket (`SOCK_SEQPACKET`) in the folder that [`ENV_ARENA_DIR`](crate::ENV_ARENA_DIR)
//! names. A process connects, and sends nothing. The recorder gets the number of the process from the kernel
//! (`SO_PEERCRED`), makes sealed memory, answers with one message, and closes the connection:
//!
//! ```text
//! "fut-arena 3"              with one descriptor (SCM_RIGHTS): the memory
//! "fut-arena 3 no: WHY"      with none
//! ```
//! The process maps the memory and closes the descriptor. It keeps no descriptor, so a program that closes all its
//! descriptors stays recorded. The number in the message is the version of the arena's layout.
//!
//! The recorder has to know when an arena is no longer used, whatever the process does. So it watches the process (with
//! a pidfd) and the memory. The descriptor that it sends is a separate open file description with a lock on it
//! (`flock`). The kernel releases the lock when the last mapping and the last descriptor of this description are gone.
//! This also happens when the process becomes another program by `exec`.

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

/// The first characters of an answer.
const GREETING: &str = "fut-arena 3";
/// Follows the greeting if the process gets no arena.
const REFUSAL: &str = " no: ";
/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 512;
