//! The user side of Sigmund: probes that cost what reading the clock costs, the user trace they write, and a runtime
//! of user threads that records every decision of its scheduler.
//!
//! ```
//! fut::events! {
//!     /// A request came in.
//!     pub fn request(id: u64, path: &str) => "{path}";
//! }
//!
//! let runtime = fut::Runtime::builder().lwps(2).build()?;
//! runtime.run(|| {
//!     let worker = fut::Builder::new().name("worker").spawn(|| request(1, "/index.html"));
//!     worker.join().expect("the worker panicked");
//! });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Run as it is, this records nothing, and a probe is a nop. Under `sigmund record`, everything is
//! recorded, the kernel included. A program without this runtime calls [`init`] once; a runtime of one's own tells its
//! decisions to [`scheduler`]. Without a recorder, a [`Recording`] writes a user trace, and a [`FlightRecorder`] keeps
//! the last events in memory until somebody wants them.
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | [`trace`]: the format of user traces, and its reader |
//! | `probes` | [`events!`], [`keys`], [`switch_events`], [`init`], [`scheduler`], [`control`] |
//! | `runtime` | [`Runtime`], [`spawn`], [`sync`] |
//! | `drain` | [`drain`], [`Recording`], [`FlightRecorder`] |

#[cfg(feature = "shm")]
pub mod clock;
#[cfg(feature = "probes")]
pub mod control;
#[cfg(feature = "drain")]
pub mod drain;
#[cfg(feature = "runtime")]
mod model_check;
#[cfg(feature = "probes")]
mod probe;
#[cfg(feature = "runtime")]
mod runtime;
#[cfg(feature = "probes")]
pub mod scheduler;
#[cfg(feature = "probes")]
mod session;
#[cfg(feature = "shm")]
pub mod shm;
#[cfg(feature = "runtime")]
pub mod sync;
pub mod trace;

#[cfg(feature = "probes")]
pub use probe::{
    DeclaredTwice, EventDecl, EventInfo, Fields, Param, SwitchError, SwitchEventsError, declared_events,
    keys, record, switch_events,
};
#[cfg(feature = "runtime")]
pub use runtime::{
    BlockedThread, Builder, Deadlock, JoinHandle, LiveState, LiveThread, Policy, Priority, Runtime,
    RuntimeBuilder, UserLocal, WaitKind, blocking, checkpoint, current, live_threads, sleep, spawn,
    yield_now,
};
#[cfg(feature = "probes")]
pub use session::{ENV_ARENA_DIR, ENV_MODE, ENV_PACKETS, Init, StartError, init};
#[cfg(all(feature = "probes", feature = "drain"))]
pub use session::{FlightRecorder, Recording, RecordingSummary};
pub use sigmund_model as model;

#[doc(hidden)]
#[cfg(feature = "probes")]
pub use linkme as __linkme;
#[doc(hidden)]
#[cfg(feature = "probes")]
pub use probe::{DECLARED as __DECLARED, Declared as __Declared, is_on as __is_on};
