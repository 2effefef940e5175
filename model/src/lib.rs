//! The vocabulary of Sigmund, shared by all crates.
//!
//! A program with its own threads is scheduled twice: its runtime schedules **user threads** on **LWPs** (kernel
//! threads), and the kernel schedules LWPs on **CPUs**. The types here describe these three, the clock of both sides,
//! the events that they record, their states, and the tables of the merged trace.
//!
//! ```
//! use sigmund_model::{Hertz, Nanos, Ticks};
//!
//! let tsc = Hertz::new(2_800_000_000.0).unwrap();
//! let reactivity = Ticks(152_835_624);
//! assert_eq!(tsc.to_nanos(reactivity), Nanos(54_584_151));
//! ```
//!
//! This crate does no I/O, starts no threads and has no unsafe code. Its only dependency is the Arrow schema of the
//! tables, behind the feature `tables`.

#![forbid(unsafe_code)]

mod clock;
mod event;
mod ids;
mod loss;
pub mod names;
mod params;
mod printable;
mod state;
#[cfg(feature = "tables")]
pub mod tables;
pub mod vocabulary;
mod wait;

pub use clock::{
    ClockDomain, ClockFit, ClockPair, Conversion, Hertz, Knot, Nanos, Reading, Snapshot, Ticks, Widen,
};
pub use event::{
    Context, Effect, Event, EventStream, EventType, Field, FieldType, LeaveReason, Level, Reported,
};
pub use ids::{Cpu, Lwp, Pid, Thread};
pub use loss::{Loss, LossKind, Severity, sum_of_counts};
pub use params::{Param, Params};
pub use printable::Printable;
pub use state::{EndReason, LwpState, PrevState, TaskState, ThreadState};
pub use wait::{Wait, WaitKind};
