//! The kind of recording that this process may make.

use super::perf::perf_fallback_available;
use super::tracefs::{Unavailable, available};

/// The best recording that is permitted here, and why a better one is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Tracepoints of the whole machine.
    Tracefs,
    /// Context switches of the program's own LWPs.
    Perf {
        /// Why tracefs cannot be used, in one line.
        why: String,
    },
    /// No kernel side.
    UserOnly {
        /// Why neither can be used, in one line.
        why: String,
    },
}

/// Determines the plan. Mounts tracefs if that is necessary and permitted.
pub fn plan() -> Plan {
    let Err(Unavailable(tracefs)) = available() else { return Plan::Tracefs };
    match perf_fallback_available() {
        Ok(()) => Plan::Perf { why: tracefs },
        Err(Unavailable(perf)) => Plan::UserOnly { why: format!("{tracefs}; {perf}") },
    }
}
