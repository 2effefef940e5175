//! Super-traces asked on a Ballista cluster: its client, scheduler and executors.
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
//! Nothing here distributes work. What is ours: how a plan and its functions are encoded, how it names the super-traces that it
//! reads (`place`), how those are opened on another machine, and where measures are computed.
//!
//! 1. A super-trace is named by its path or URL and by an identity: a digest of the names, sizes and versions of its files. An
//!    executor that finds another one at the path says so; no answer is of two super-traces.
//! 2. A plan is sent only if it is the same after it is encoded and decoded, as far as its description says.
//! 3. A plan that reads no file of a super-trace runs in the client.
//! 4. Executors read files of super-traces and no others.
//! 5. No query waits without end: what is known to stall Ballista's scheduler is not sent, and a query of which nothing runs
//!    although executors are idle is cancelled (`stalled`).

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
