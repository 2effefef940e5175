//! The user side of Sigmund: probes that cost what reading the clock costs, the user trace they write, and a
//! runtime of user threads that records every decision of its scheduler.

pub mod trace;

#[cfg(feature = "shm")]
pub mod clock;
#[cfg(feature = "drain")]
pub mod drain;
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

#[cfg(feature = "probes")]
pub use probe::{EventDecl, Fields, Param, keys, record};
#[cfg(feature = "runtime")]
pub use runtime::{Builder, JoinHandle, Runtime, RuntimeBuilder, current, spawn, yield_now};
#[cfg(feature = "probes")]
pub use session::{ENV_ARENA_DIR, ENV_PACKETS, Init, init};
#[cfg(all(feature = "probes", feature = "drain"))]
pub use session::{Recording, RecordingSummary};
pub use sigmund_model as model;

#[doc(hidden)]
#[cfg(feature = "probes")]
pub use linkme as __linkme;
#[doc(hidden)]
#[cfg(feature = "probes")]
pub use probe::DECLARED as __DECLARED;
