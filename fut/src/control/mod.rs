//! Control from outside: shows and changes what is recorded while the program runs.
//!
//! A thread of the traced process, `fut-control`, sleeps in `accept` on a Unix socket from the start of the session on.
//! It costs nothing without a request, records nothing, and is a service thread (`service_thread`): it receives none of
//! the program's signals, and ends with the process. The environment variable `FUT_CONTROL=0` disables it. If the socket
//! cannot be made, the program continues without it, and [`state`] returns the reason. A forked child that records has
//! its own thread and socket.
//!
//! # Access
//!
//! The same user and root have access. The socket is `$XDG_RUNTIME_DIR/fut/PID.sock`. If the user has no such folder,
//! the socket is `/run/fut/PID.sock` for root, and `/tmp/fut-UID/PID.sock` for other users, or
//! `/tmp/fut-UID-RANDOM/PID.sock` if another user has taken that name.
//!
//! The folder belongs to the user and has mode 0700; a folder that belongs to another user is refused. The socket has
//! mode 0600. The peer that the kernel reports (`SO_PEERCRED`) is checked. UID is the effective user when the session
//! starts: if a program drops root's rights later, only root can control it. Processes that look for sockets remove
//! those of ended processes.
//!
//! # The protocol
//!
//! Text, in UTF-8. One request, one answer, then the connection is closed.
//!
//! ```text
//! request   fut-control 1 list\n            of at most 4096 bytes, within 2 s
//!           fut-control 1 enable PATTERN\n  also: disable PATTERN
//!           fut-control 1 keys\n            also: keys 0x101
//!           fut-control 1 status\n          also: threads
//!           fut-control 1 snapshot\n        with the descriptor of an empty file (SCM_RIGHTS)
//!
//! answer    fut-control 1 ok\n              or: fut-control 1 error⇥MESSAGE\n
//!           fact⇥NAME⇥CELL\n                any number
//!           columns⇥NAME⇥NAME…\n            if there is a table
//!           row⇥CELL⇥CELL…\n                as many cells as columns
//!           end\n                           an answer without it was cut off
//!
//! cell      n123 a number, f1.5 a fraction, ttext a text, - nothing
//! ```
//! In texts, `\` is written `\\`, a tab `\t`, a newline `\n`, and a carriage return `\r`. A request that is not exactly
//! one of these, or has more than one descriptor, changes nothing and is answered with an error.
//!
//! Requests are answered one after the other, in the order in which they become complete. The server never waits for a
//! client that sends nothing, reads slowly or sends without end. It serves at most 16 clients at a time. If another one
//! connects, the client that has been silent for longest is rejected. A client has one deadline for request and answer
//! together, and reads at most 32 MiB.

mod answer;
mod client;
mod costs;
mod reply;
mod request;
mod sample;
mod server;
mod socket_folder;
mod status;
#[cfg(feature = "runtime")]
mod threads;
mod wire;

pub use client::{AskError, Process};
pub use reply::{Cell, Reply};
pub use request::Request;
pub use server::{ENV_CONTROL, State, state};
pub(crate) use server::{forget, start};

/// The first characters of every request and every answer; the number is the version of the protocol.
const GREETING: &str = "fut-control 1";
