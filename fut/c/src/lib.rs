//! libfut: the functions of `fut.h` for programs in C. The header is its documentation.
//!
//! The functions here only translate calls. Recording, sessions and the trace are in `fut`. This library does not call
//! back into the program. So a probe cannot enter functions built with `-finstrument-functions`, with one exception:
//! the functions of the program's own allocator. Their records are counted as lost while the LWP is being attached.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod declare;
pub mod functions;
mod own_events;
pub mod probes;
pub mod setup;
mod text;
mod trace_file;
