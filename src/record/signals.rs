//! Handles Ctrl-C and similar signals: the program is asked to end, and the recording is completed.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::Signal;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::{emulate_default_handler, siginfo::Cause},
};

/// Receives signals that ask the recorder to stop. After this value is dropped, such a signal ends the process again.
pub(super) struct Signals {
    asked: Receiver<Asked>,
}

/// A request to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// The signal that made it.
    pub(super) signal: Signal,
    /// Whether the program received the same signal. A terminal sends Ctrl-C to all its foreground processes.
    pub(super) program_knows: bool,
}

impl Asked {
    /// The request that is made when the time given by `--for` is over.
    pub(super) fn by_the_clock() -> Asked {
        Asked { signal: Signal::INT, program_knows: false }
    }
}

impl Signals {
    pub(super) fn register() -> Result<Signals> {
        let mut signals =
            SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP, SIGXFSZ]).context("signal handlers")?;
        let (tell, asked) = channel();
        let body = move || {
            for origin in signals.forever() {
                let signal = match origin.signal {
                    // A file that exceeds the size limit is an error where it is written. It must not end this process.
                    SIGXFSZ => continue,
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    _ => Signal::INT,
                };
                let program_knows = matches!(origin.cause, Cause::Kernel);
                if tell.send(Asked { signal, program_knows }).is_err() {
                    // Nobody receives the signal any more, so it gets its default action.
                    let _ = emulate_default_handler(origin.signal);
                }
            }
        };
        thread::Builder::new().name("signals".into()).spawn(body).context("a thread for signals")?;
        Ok(Signals { asked })
    }

    /// The next request, if there is one.
    pub(super) fn next(&self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }

    /// Waits for the next request, at most this long. Returns as soon as there is one.
    pub(super) fn next_within(&self, time: Duration) -> Option<Asked> {
        match self.asked.recv_timeout(time) {
            Ok(asked) => Some(asked),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread for signals has ended, which should never happen. Sleeping avoids a busy loop.
                thread::sleep(time);
                None
            }
        }
    }
}
