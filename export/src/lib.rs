//! A super-trace in the formats of other tools.
//!
//! Two halves that know nothing of each other. The [`timeline`] tells what happened, in the order of time: which LWP
//! and which user thread each CPU carried, what each was doing, spans, interrupts, system calls, wakeups. A format
//! hears it as a [`Sink`](timeline::Sink) and writes it down.
//!
//! ```text
//!   tables of a super-trace ──▶ timeline ──▶ Sink ──▶ a file that a viewer opens
//!                                (Cast, then Changes)
//! ```

#![forbid(unsafe_code)]

pub mod chrome;
pub mod coarse;
pub mod ctf;
mod error;
pub mod otf2;
pub mod paje;
pub mod perfetto;
pub mod tables;
pub mod telling;
pub mod timeline;
pub mod vampir;
mod viewer;

pub use error::{Error, ErrorKind};
pub use viewer::{Picture, Viewer};
