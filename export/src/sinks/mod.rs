//! The formats of viewers: each is a [`Sink`](crate::timeline::Sink) that writes a timeline.
//!
//! The documentation of each module describes what is drawn, what is lost, and the cost; `docs/export.md` compares them.

mod background;
pub mod chrome;
pub mod ctf;
pub mod otf2;
pub mod paje;
pub mod perfetto;
mod viewer;

pub use viewer::{ViewerFormat, ViewerSink};
