//! libfut: the functions of `fut.h` for programs in C. The header is its documentation.
//!
//! The functions here only translate; recording, sessions and the trace are `fut`'s. Nothing of this library calls
//! back into the program, so that functions built with `-finstrument-functions` cannot be entered from a probe,
//! except by an allocator of the program's own: those records are counted as lost while the LWP is being attached.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod declare;
pub mod functions;
mod own_events;
pub mod probes;
pub mod setup;
mod text;
