//! Threads that wait for each other, by fut's means and by tokio's.

pub(super) mod tasks;
pub(super) mod user_threads;
