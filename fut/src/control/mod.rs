//! Control from outside: what is recorded can be looked at and changed while the program runs.
//!
//! A thread of the traced process, `fut-control`, sleeps in `accept` on a Unix socket, from the start of the session on.
//! It costs nothing without a request, records nothing, takes no signal of the program's, and ends with the process. The
//! environment variable `FUT_CONTROL=0` does without it. Where the socket cannot be made, the program continues without, and
//! [`state`] has the reason. A child that `fork` made and that records has a thread and a socket of its own.
//!
//! # Who may
//!
//! The same user, and root. The socket is `$XDG_RUNTIME_DIR/fut/PID.sock`; where there is no such folder of that user's,
//! root's is `/run/fut/PID.sock`, and another user's `/tmp/fut-UID/PID.sock`, or `/tmp/fut-UID-RANDOM/PID.sock` if another
//! user has taken that name. The folder is the user's, and only the user can list it (0700; one that belongs to
//! another user is refused), the socket is 0600, and the peer that the kernel reports (`SO_PEERCRED`) is checked. UID is
//! the effective one when the session starts: a program that drops root's rights later is root's to ask. Sockets of
//! processes that are gone are removed by whoever finds them.
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
//! one of these changes nothing, and is answered with an error; so is one with more than one descriptor. Requests are
//! answered one after the other, as they become whole; the server never waits for a client that is silent, slow or
//! endless. It serves 16 at one time: when there are more, the one that has been silent for longest is turned away. The
//! client has one deadline for the whole conversation, and reads 32 MiB at most.

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

/// What every request and every answer begins with.
const GREETING: &str = "fut-control 1";
