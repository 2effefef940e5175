//! A super-trace in the formats of other tools.
//!
//! ```text
//!   tables of a super-trace ──▶ replay ──▶ timeline: Actors, then Changes ──▶ a Sink ──▶ a file that a viewer opens
//!                                                                  └▶ Coarse ─┘
//! ```
//!
//! * [`replay`] reads a super-trace, and emits what a filter selects in the order of time.
//! * [`timeline`] has the types of what is emitted: the CPUs, LWPs and user threads, then every change of one of them.
//!   It is independent of tables and formats.
//! * [`sinks`] write a timeline in one format each. They are independent of tables and filters.
//! * [`coarse`] is a sink that merges intervals too short to be seen, and emits another timeline.
//! * [`tables`] writes tables as tables; it is independent of the other modules.

#![forbid(unsafe_code)]

pub mod coarse;
mod error;
mod living;
pub mod replay;
pub mod sinks;
pub mod tables;
pub mod timeline;

pub use error::{Error, ErrorKind};
pub use sinks::{ViewerFormat, ViewerSink};
