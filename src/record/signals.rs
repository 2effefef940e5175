//! Ctrl-C and friends: the program is asked to stop, the recording is completed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level,
};

/// Signals that ask us to stop, counted.
pub(super) struct Signals {
    count: Arc<AtomicUsize>,
    _thread: std::thread::JoinHandle<()>,
}

impl Signals {
    pub(super) fn register() -> Result<Signals> {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let mut signals =
            signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signal handlers")?;
        let body = move || {
            for signal in signals.forever() {
                let _name = low_level::signal_name(signal);
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(body)?;
        Ok(Signals { count, _thread: thread })
    }

    /// Whether any came.
    pub(super) fn stop_asked(&self) -> bool {
        self.count() > 0
    }

    /// How many came.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
