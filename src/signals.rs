//! Signals that end programs. The first signal ends the current work, and incomplete output is removed. The second
//! signal ends the process immediately, because the work may not check the flag for a long time, or may wait for a
//! disk.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::Result;
use signal_hook::{SigId, consts::TERM_SIGNALS, flag};

/// The exit status, the same as for any error.
const FAILED: i32 = 2;

/// A flag that is set by such a signal, and the ids to unregister it.
pub(crate) fn stop_at_signals() -> Result<(Arc<AtomicBool>, Vec<SigId>)> {
    let stop = Arc::new(AtomicBool::new(false));
    // The order matters: at the first signal, the conditional shutdown runs before the flag is set.
    let registered = TERM_SIGNALS.iter().flat_map(|signal| {
        let end = flag::register_conditional_shutdown(*signal, FAILED, Arc::clone(&stop));
        [end, flag::register(*signal, Arc::clone(&stop))]
    });
    let signals = registered.collect::<Result<_, _>>()?;
    Ok((stop, signals))
}
