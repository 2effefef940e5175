//! Atomics, threads and parking that loom can look into: loom's in a model (`--cfg loom`), the standard library's
//! otherwise.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

/// The threads of a model, or of the system.
pub(crate) mod thread {
    #[cfg(loom)]
    pub(crate) use loom::thread::{Thread, current, park};
    #[cfg(not(loom))]
    pub(crate) use std::thread::{Thread, current, park, park_timeout};

    #[cfg(loom)]
    pub(crate) fn park_timeout(_patience: std::time::Duration) {
        park();
    }
}
