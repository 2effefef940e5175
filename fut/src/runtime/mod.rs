//! A runtime of user threads on LWPs, that records every decision of its scheduler.
//!
//! User threads are cooperative: they run until they yield, block or end. Whoever is ready waits in one queue, first
//! in, first out, shared by all LWPs (the policy of the runtime that the paper traces).
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

mod join;
mod lwp;
mod park;
mod pool;
mod ready_queue;
mod spawn;
mod stack;
mod user_thread;

pub use join::JoinHandle;
pub(crate) use park::{block_on, here};
pub use park::{current, yield_now};
pub use pool::{Runtime, RuntimeBuilder};
pub use spawn::{Builder, spawn};
pub(crate) use user_thread::UserThread;
