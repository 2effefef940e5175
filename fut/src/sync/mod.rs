//! What user threads synchronise with: it blocks the user thread, and not the LWP.

mod mutex;

pub use mutex::{Mutex, MutexGuard};
