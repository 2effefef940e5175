//! A super-trace in the formats of other tools.
//!
//! ```text
//!   tables of a super-trace ──▶ replay ──▶ timeline: Actors, then Changes ──▶ a Sink ──▶ a file that a viewer opens
//!                                                                  └▶ Coarse ─┘
//! ```
//!
//! * [`replay`] reads a super-trace, and emits what a filter selects in the order of time.
//! * [`timeline`] is what it emits: the CPUs, LWPs and user threads that take part, then every change of one of them. It
//!   knows neither tables nor formats.
//! * [`sinks`] write a timeline in one format each. They know neither tables nor filters.
//! * [`coarse`] is a sink that merges what is too short to be seen, and emits another timeline.
//! * [`tables`] writes tables as tables; it has nothing to do with the rest.

#![forbid(unsafe_code)]

pub mod coarse;
mod error;
pub mod replay;
pub mod sinks;
pub mod tables;
pub mod timeline;

pub use error::{Error, ErrorKind};
pub use sinks::{ViewerFormat, ViewerSink};
