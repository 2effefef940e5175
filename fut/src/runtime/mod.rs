//! A runtime of user threads on LWPs, which records every decision of its scheduler.
//!
//! User threads are cooperative: they run until they yield, block, end, or pass a safe point after their quantum. The
//! [`Policy`] decides which LWP runs which ready thread; a thread that has begun stays on its LWP, unless the program
//! has promised that it may move ([`RuntimeBuilder::migrating`]).
//!
//! ```
//! let runtime = fut::Runtime::builder().lwps(2).build()?;
//! let sum = runtime.run(|| {
//!     let halves = [fut::spawn(|| (0..50).sum::<u32>()), fut::spawn(|| (50..100).sum())];
//!     halves.into_iter().map(|half| half.join().unwrap()).sum::<u32>()
//! });
//! assert_eq!(sum, 4950);
//! # Ok::<(), std::io::Error>(())
//! ```

mod blocking;
mod carried;
mod deadlock;
mod discard;
mod graceful;
mod join;
mod join_set;
mod left_behind;
mod live;
mod local;
mod lwp;
mod park;
mod parker;
mod permit;
mod plain;
mod pool;
mod reactor;
mod ready;
mod scope;
mod spawn;
mod stack;
mod thread;
mod thread_counts;
mod unparker;
mod waits;

pub use blocking::blocking;
pub use deadlock::{BlockedThread, Deadlock};
pub use graceful::ShutdownTimeout;
pub use join::{JoinHandle, RuntimeDropped};
pub use join_set::JoinSet;
pub use live::{LiveState, LiveThread, live_threads};
pub use local::{AccessError, UserLocal};
pub use park::{checkpoint, current, sleep, yield_now};
pub(crate) use park::{here, park, park_until, try_here};
#[cfg(not(loom))]
pub(crate) use parker::Parker;
pub use pool::{Policy, Priority, Runtime, RuntimeBuilder};
#[cfg(feature = "compat")]
pub(crate) use reactor::TaskTimer;
pub(crate) use reactor::{Direction, Limit, RegisteredFd};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use spawn::{Builder, spawn};
pub use unparker::{Unparker, park_current, park_timeout, unparker};
#[cfg(not(loom))]
pub(crate) use waits::LeaveQueue;
pub use waits::WaitKind;
pub(crate) use waits::WaitsFor;
#[cfg(not(loom))]
pub(crate) use waits::{MadeIn, holder_here};
