//! The merge: puts user and kernel events on one time line, and determines for each event its user thread, LWP and CPU.
//!
//! ```text
//!   run directory, trace.dat, user trace, listing             source/   what an input is, its streams, its clock
//!          │ streams of events, each in the order of time
//!          │ prefetched, where there are CPUs for it              prefetch.rs, worker_pool.rs
//!          ▼
//!   one stream, in the order of time                           order.rs  k-way merge
//!          │
//!          ▼
//!   CPU → LWP → user thread, kept by the switch events         machine/  states and their intervals, the witnesses
//!          │ what begins and ends
//!          ▼
//!   system calls, interrupts, spans, locks, wakeups, …         pairing/  intervals from pairs of events
//!          │ rows                                              tables/   what a row is
//!          │ encoded, where there are CPUs for it              encoding/ pages, dictionaries, differences
//!          ▼
//!   NAME.supertrace/TABLE/part-00000.parquet, …
//! ```
//!
//! All data are streamed: memory is needed for the LWPs and user threads that live at one time, not for the whole
//! trace.

#![forbid(unsafe_code)]

mod encoding;
mod error;
mod input_event_types;
mod machine;
mod merge;
mod order;
mod pairing;
mod prefetch;
mod recordings;
mod run;
mod source;
mod summary;
mod symbols;
mod tables;
mod worker_pool;

pub use error::Error;
pub use merge::{MergeOptions, Progress, merge};
pub use run::{
    CpuTimeReading, KERNEL_DAT, KERNEL_PERF, KernelSide, LwpCpuTime, Manifest, ManifestSnapshot,
    NAMESPACE_MARK, NamespaceNumbers, Packed, Part, PartFile, ProcessLwps, RecordedSchema, Removed, Rotation,
    SnapshotLog, UserSide, is_of_a_run, user_carried_name, user_part_name, whole_and_part,
};
pub use summary::Summary;
