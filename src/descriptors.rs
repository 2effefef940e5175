//! How many files this program may hold open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit. The usual soft limit of 1024 descriptors is too low for a merge with many
/// inputs, a recording of many processes, or a large fleet. If the limit cannot be raised, the error names the file
/// that could not be opened.
///
/// Programs that are started afterwards inherit the limit. So call this only after a recorded program was started.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
