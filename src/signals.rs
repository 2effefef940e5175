//! Signals that end programs: the first ends the work, and nothing half done stays. The second ends the process, wherever
//! it is: what it is doing may not look at the flag for long, or wait for a disk.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::Result;
use signal_hook::{SigId, consts::TERM_SIGNALS, flag};

/// The exit status, the same as for any error.
const FAILED: i32 = 2;

/// A flag that such a signal sets, and what unregisters it.
pub(crate) fn stop_at_signals() -> Result<(Arc<AtomicBool>, Vec<SigId>)> {
    let stop = Arc::new(AtomicBool::new(false));
    // In this order: the first signal finds the flag not set.
    let registered = TERM_SIGNALS.iter().flat_map(|signal| {
        let end = flag::register_conditional_shutdown(*signal, FAILED, Arc::clone(&stop));
        [end, flag::register(*signal, Arc::clone(&stop))]
    });
    let signals = registered.collect::<Result<_, _>>()?;
    Ok((stop, signals))
}
