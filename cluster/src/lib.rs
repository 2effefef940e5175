//! Queries super-traces on a Ballista cluster: client, scheduler and executors.
//!
//! ```text
//!   sigmund sql, measures      plans on the super-trace, as without a cluster
//!     │ Cluster::join: the plan, encoded (codec)
//!   scheduler                  Ballista's: splits the plan into stages and tasks
//!     │
//!   executors                  Ballista's: each opens the super-traces of its tasks itself (traces), and
//!                              computes measures (measured)
//! ```
//!
//! Ballista distributes the work. This crate defines how a plan and its functions are encoded, how a plan names the
//! super-traces that it reads (`place`), how another machine opens these, and where measures are computed.
//!
//! 1. A super-trace is named by its path or URL and by an identity: a digest of the names, sizes and versions of its
//!    files. If an executor finds another super-trace at the path, it reports an error. So no answer mixes two
//!    super-traces.
//! 2. A plan is sent only if its description is the same after encoding and decoding.
//! 3. A plan that reads no file of a super-trace runs in the client.
//! 4. Executors read files of super-traces and no others.
//! 5. No query waits forever. A plan that is known to stall Ballista's scheduler is not sent. A query of which nothing
//!    runs although executors are idle is cancelled (`stalled`).

#![cfg(feature = "ballista")]
#![forbid(unsafe_code)]

mod answers;
mod client;
mod codec;
mod executor;
mod faithful;
mod files;
mod log;
mod measured;
mod place;
mod planner;
mod rows;
mod scheduler;
mod stalled;
pub mod stores;
mod traces;

/// The largest message between the parts of a cluster, in bytes: a plan with rows in it, or a batch.
const MESSAGE: u32 = 64 << 20;

pub use client::Cluster;
pub use executor::{ExecutorOptions, run_executor};
pub use log::Print;
pub use scheduler::{SchedulerOptions, run_scheduler};
