//! What is printed: one section a file.

pub(crate) mod cost;
pub(crate) mod memory;
pub(crate) mod overhead;

use std::path::Path;

/// What all sections have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) rounds: usize,
    /// Samples take so many times less.
    pub(crate) hurry: u64,
    /// Of the machine.
    pub(crate) cpus: usize,
    pub(crate) scratch: &'a Path,
}

fn verdict(met: bool) -> String {
    if met { "met" } else { "MISSED" }.into()
}
