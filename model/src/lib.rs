//! The words of Sigmund, shared by every crate.
//!
//! A program with its own threads is scheduled twice: its runtime puts **user threads** on **LWPs** (kernel
//! threads), the kernel puts LWPs on **CPUs**. The types here name those three, the clock both sides are
//! stamped with, the events they record, the states they pass through, and the tables the merge of both
//! sides is written to.
//!
//! ```
//! use sigmund_model::{Hertz, Nanos, Ticks};
//!
//! let tsc = Hertz::new(2_800_000_000.0).unwrap();
//! let reactivity = Ticks(152_835_624);
//! assert_eq!(tsc.to_nanos(reactivity), Nanos(54_584_151));
//! ```
//!
//! This crate does no I/O, starts no threads and has no unsafe code. Its only dependency, the Arrow schema of
//! the tables, is behind the feature `tables`.

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
