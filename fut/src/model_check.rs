//! Atomics and locks that loom can look into: loom's in a model (`--cfg loom`), the standard library's otherwise.

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
