//! What a program of several steps took.

use crate::scale;

/// CPU time of each step, by its number, in ns; and resident memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) cpu_ns: [u64; scale::STEPS.len()],
    /// While all threads but one are blocked, and that one sleeps: CPU time of a second, in ns.
    pub(crate) idle_ns: u64,
    pub(crate) resident: u64,
}
