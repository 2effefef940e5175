//! The merge: user events and kernel events on one time line, and for each of them who was on what.
//!
//! ```text
//!   run directory, trace.dat, user trace, listing             source/   what an input is, its streams, its clock
//!          │ streams of events, each in the order of time
//!          │ read ahead, where there are processors for it     ahead.rs, helpers.rs
//!          ▼
//!   one stream, in the order of time                           order.rs  k-way merge
//!          │
//!          ▼
//!   CPU → LWP → user thread, kept by the switch events         machine/  the state, the intervals, the witnesses
//!          │ rows
//!          │ encoded, where there are processors for it
//!          ▼
//!   NAME.supertrace/TABLE/part-00000.parquet, …                tables/   writers
//! ```
//!
//! Everything streams: memory holds the LWPs and user threads that live at one time, not the trace.

#![forbid(unsafe_code)]

mod about;
mod ahead;
mod error;
mod helpers;
mod kinds;
mod machine;
mod merge;
mod order;
mod recordings;
mod run;
mod source;
mod summary;
mod symbols;
mod tables;

pub use error::Error;
pub use merge::{MergeOptions, Progress, merge};
pub use run::{
    CpuTimeReading, KERNEL_DAT, KERNEL_PERF, KernelSide, LwpCpuTime, Manifest, ManifestSnapshot,
    NAMESPACE_MARK, NamespaceNumbers, ProcessLwps, SnapshotLog, UserSide, is_of_a_run,
};
pub use summary::Summary;
