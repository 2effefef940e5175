//! The sections of the output, one file each.

pub(crate) mod cost;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod net;
pub(crate) mod overhead;
pub(crate) mod scale;

use std::path::Path;

/// The parameters of all sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) rounds: usize,
    /// Factor by which samples are shortened.
    pub(crate) hurry: u64,
    /// Number of CPUs of the machine.
    pub(crate) cpus: usize,
    pub(crate) scratch: &'a Path,
}

fn verdict(met: bool) -> String {
    if met { "met" } else { "MISSED" }.into()
}
