//! The user side of Sigmund: probes at the cost of reading the clock, the user trace they write, and a runtime of user
//! threads that records every decision of its scheduler.
//!
//! ```
//! fut::events! {
//!     /// A request arrived.
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
//! Run on its own, this records nothing, and a probe is a nop. Under `sigmund record`, everything is recorded,
//! including the kernel. A program without this runtime calls [`init`] once; another runtime reports its decisions to
//! [`scheduler`]. Without a recorder, a [`Recording`] writes a user trace, and a [`FlightRecorder`] keeps the last
//! events in memory until a snapshot is taken.
//!
//! # What the runtime guarantees
//!
//! - A user thread that has begun stays on its LWP, so values that belong to that LWP (a borrowed thread-local, an `Rc`
//!   in one, a guard of `std`) stay valid across calls that block or yield. Threads that have not begun may begin on
//!   any idle LWP.
//! - The user threads of an LWP share its thread-locals, its locks and [`std::thread::panicking`]. So the value of a
//!   thread-local may change across such a call: its initialiser must not switch, and neither must code that sets one
//!   for the duration of a call and restores the old value, as `scoped_tls` does. Nor may a panic hook switch: another
//!   thread of the LWP that panics meanwhile would count as panicking in the hook, which ends the process.
//! - User threads that migrate must not keep anything that belongs to an LWP across such a call. A runtime with
//!   such threads is built by [`RuntimeBuilder::migrating`], which is unsafe.
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | [`trace`](mod@trace): the format of user traces, and its reader |
//! | `probes` | [`events!`], [`span!`], [`keys`], [`switch_events`], [`init`], [`scheduler`], [`control`] |
//! | `macros` | [`trace`](macro@trace) on functions |
//! | `runtime` | [`Runtime`], [`spawn`], [`block_on`], [`select!`], [`sync`], [`net`], [`fs`], [`process`], [`signal`] |
//! | `futures-io`, `tokio`, `hyper` | `compat`: the traits of these crates for this one's sockets; off by default |
//! | `drain` | [`drain`], [`Recording`], [`FlightRecorder`] |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[cfg(feature = "shm")]
pub mod clock;
#[cfg(feature = "compat")]
pub mod compat;
#[cfg(feature = "probes")]
pub mod control;
#[cfg(feature = "drain")]
pub mod drain;
#[cfg(feature = "probes")]
#[doc(hidden)]
pub mod environment;
#[cfg(feature = "probes")]
mod file_size_signal;
#[cfg(feature = "runtime")]
pub mod fs;
#[cfg(any(feature = "probes", feature = "drain"))]
mod handover;
#[cfg(feature = "runtime")]
mod model_check;
#[cfg(feature = "runtime")]
pub mod net;
#[cfg(feature = "probes")]
mod probe;
#[cfg(feature = "runtime")]
pub mod process;
#[cfg(feature = "runtime")]
mod runtime;
#[cfg(feature = "probes")]
pub mod scheduler;
#[cfg(feature = "probes")]
mod service_thread;
#[cfg(feature = "probes")]
mod session;
#[cfg(feature = "shm")]
pub mod shm;
#[cfg(feature = "runtime")]
pub mod signal;
#[cfg(feature = "probes")]
mod span;
#[cfg(feature = "runtime")]
pub mod sync;
pub mod trace;
#[cfg(feature = "probes")]
mod warning;

/// ```
/// #[fut::trace]
/// fn area(width: u64, height: u64) -> u64 {
///     width * height
/// }
/// assert_eq!(area(6, 7), 42);
/// ```
/// ```compile_fail
/// #[fut::trace]
/// async fn area() {}
/// ```
#[cfg(feature = "macros")]
pub use fut_macros::trace;
#[cfg(feature = "probes")]
pub use probe::{
    DeclaredTwice, EventDecl, EventInfo, Fields, Param, SwitchError, SwitchEventsError, declared_events,
    is_recording, keys, record, switch_events,
};
#[cfg(feature = "runtime")]
pub use runtime::{
    AccessError, BlockedThread, Builder, Deadlock, JoinHandle, JoinSet, LiveState, LiveThread, Policy,
    Priority, Runtime, RuntimeBuilder, RuntimeDropped, Scope, ScopedJoinHandle, ShutdownTimeout, Unparker,
    UserLocal, WaitKind, blocking, checkpoint, current, live_threads, park_current as park, park_timeout,
    scope, sleep, spawn, unparker, yield_now,
};
#[cfg(feature = "probes")]
pub use session::{
    DeclareError, ENV_ARENA_DIR, ENV_KEYMASK, ENV_KEYMASK_FILE, ENV_MODE, ENV_PACKETS, Init, KeymaskError,
    StartError, costs, declare, dropped_before_setup, init, note_modules, parse_keymask,
};
#[cfg(all(feature = "probes", feature = "drain"))]
pub use session::{FlightRecorder, Recording, RecordingSummary};
pub use sigmund_model as model;
#[cfg(feature = "probes")]
pub use span::{Span, SpanSite};
#[cfg(feature = "runtime")]
pub use sync::block_on;

#[doc(hidden)]
#[cfg(feature = "probes")]
pub use file_size_signal::without_file_size_signal as __without_file_size_signal;
#[doc(hidden)]
#[cfg(feature = "probes")]
pub use linkme as __linkme;
#[doc(hidden)]
#[cfg(feature = "probes")]
pub use probe::{DECLARED as __DECLARED, Declared as __Declared, is_on as __is_on};
#[doc(hidden)]
#[cfg(feature = "probes")]
pub use session::{count_before_setup as __count_before_setup, keymask_is_given as __keymask_is_given};
#[doc(hidden)]
#[cfg(feature = "probes")]
pub use span::{InFunction as __InFunction, SPAN_SITES as __SPAN_SITES};
#[doc(hidden)]
#[cfg(feature = "probes")]
pub use warning::warn as __warn;
