//! Signals that end programs: they end the work, and nothing half done stays.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::Result;
use signal_hook::{SigId, consts::TERM_SIGNALS, flag};

/// A flag that such a signal sets, and what unregisters it.
pub(crate) fn stop_at_signals() -> Result<(Arc<AtomicBool>, Vec<SigId>)> {
    let stop = Arc::new(AtomicBool::new(false));
    let register = |signal: &i32| flag::register(*signal, Arc::clone(&stop));
    let signals = TERM_SIGNALS.iter().map(register).collect::<Result<_, _>>()?;
    Ok((stop, signals))
}
