//! How many files this program may hold open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one: 1024 descriptors, the usual soft limit, are soon used up by the inputs of a merge,
/// the processes of a recording or the super-traces of a fleet. Where it cannot be raised, the file that finds none left is
/// named.
///
/// Programs that this one starts inherit the limit, so it is raised after they were started.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
