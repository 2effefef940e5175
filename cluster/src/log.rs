//! What Ballista writes to its log: warnings and errors, for whoever runs a scheduler or an executor.

use std::sync::OnceLock;

use log::{LevelFilter, Log, Metadata, Record};

/// Prints a line.
pub type Print = fn(&str);

/// Lines of the log; none before it is started.
struct Lines(OnceLock<Print>);

static LINES: Lines = Lines(OnceLock::new());

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // `display` draws plans with what they counted, for its log, and warns where a drawing fails.
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

/// Has them printed from here on, unless this process has a log already.
pub(crate) fn start(print: Print) {
    LINES.0.get_or_init(|| print);
    if log::set_logger(&LINES).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
