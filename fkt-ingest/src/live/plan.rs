//! Which kind of recording this process may make.

use super::perf::perf_fallback_available;
use super::tracefs::{Unavailable, available};

/// The best recording that is allowed here, and why not a better one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Tracepoints of the whole machine.
    Tracefs,
    /// Context switches of the program's own LWPs.
    Perf {
        /// Why not tracefs, in one line.
        why: String,
    },
    /// Nothing of the kernel.
    UserOnly {
        /// Why neither, in one line.
        why: String,
    },
}

/// Finds out. Mounts tracefs when it may and has to.
pub fn plan() -> Plan {
    let Err(Unavailable(tracefs)) = available() else { return Plan::Tracefs };
    match perf_fallback_available() {
        Ok(()) => Plan::Perf { why: tracefs },
        Err(Unavailable(perf)) => Plan::UserOnly { why: format!("{tracefs}; {perf}") },
    }
}
