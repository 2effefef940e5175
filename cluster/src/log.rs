//! Prints Ballista's log, warnings and errors, for the user who runs a scheduler or an executor.

use std::sync::OnceLock;

use log::{LevelFilter, Log, Metadata, Record};

/// Prints a line.
pub type Print = fn(&str);

/// The function that prints lines of the log; unset until the log is started.
struct Lines(OnceLock<Print>);

static LINES: Lines = Lines(OnceLock::new());

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // The target `display` logs drawings of plans with their counters, and warns if a drawing fails. It is not
        // needed.
        let target = metadata.target();
        target.starts_with("ballista") && target != "ballista_scheduler::display"
    }

    fn log(&self, record: &Record<'_>) {
        if let Some(print) = self.0.get().filter(|_| self.enabled(record.metadata())) {
            print(&format!("{}: {}", record.target(), record.args()));
        }
    }

    fn flush(&self) {}
}

/// Starts to print the log, unless this process already has a logger.
pub(crate) fn start(print: Print) {
    LINES.0.get_or_init(|| print);
    if log::set_logger(&LINES).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
