//! The kernel side of a trace: trace files and live recording, as streams of kernel events.
//!
//! [`open`] recognises a trace by its content: [`TraceDat`] is a file of trace-cmd, KernelShark or our own recorder,
//! [`PerfData`] one of perf, [`CtfTrace`] one of LTTng, [`Fxt`] one of FxT, [`FtraceText`] ftrace's text output. All
//! are a [`TraceFile`]. A [`Listing`] is a text that people write by hand. [`live`] records, with tracefs or with perf
//! events.
//!
//! Input is untrusted until parsed: no size from a file is trusted, an event with an unknown number is kept, and a
//! damaged page is skipped and becomes a [`Loss`](sigmund_model::Loss).
//!
//! ```no_run
//! use sigmund_model::Event;
//!
//! let mut event = Event::default();
//! for trace in fkt_ingest::open("trace.dat".as_ref())? {
//!     for mut stream in trace.streams() {
//!         while stream.events.next_into(&mut event)? {
//!             println!("{} {}", event.tick.0, trace.event_types()[event.kind as usize].name);
//!         }
//!         for loss in stream.events.take_losses() {
//!             eprintln!("{}", loss.detail);
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `unsafe` is in [`live`], and once in `input`, which maps files.

#[forbid(unsafe_code)]
mod ctf;
#[forbid(unsafe_code)]
mod cut;
#[forbid(unsafe_code)]
mod effect_plan;
#[forbid(unsafe_code)]
mod error;
#[forbid(unsafe_code)]
mod event_names;
#[forbid(unsafe_code)]
mod format;
#[forbid(unsafe_code)]
mod ftrace_text;
#[forbid(unsafe_code)]
mod fxt;
mod input;
#[forbid(unsafe_code)]
mod listing;
pub mod live;
#[forbid(unsafe_code)]
mod losses;
#[forbid(unsafe_code)]
mod open;
#[forbid(unsafe_code)]
mod perf_data;
#[forbid(unsafe_code)]
mod ring_buffer;
#[forbid(unsafe_code)]
mod trace_dat;
#[forbid(unsafe_code)]
mod trace_file;

pub use ctf::{CtfStream, CtfTrace};
pub use error::{Error, ErrorKind};
pub use event_names::EventNames;
pub use ftrace_text::FtraceText;
pub use fxt::Fxt;
pub use listing::Listing;
pub use open::{OpenOptions, from_bytes, from_bytes_with, open, open_file, open_with};
pub use perf_data::{PerfData, PerfStream};
pub use trace_dat::{KernelStream, TraceDat, TscToNanos};
pub use trace_file::{TraceFile, TraceStream};
