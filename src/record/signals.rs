//! Ctrl-C and friends: the program is asked to stop, the recording is completed.

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

/// Signals that ask us to stop, as they come. When this goes, they end the process again.
pub(super) struct Signals {
    asked: Receiver<Asked>,
}

/// A signal asked to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// By this signal.
    pub(super) signal: Signal,
    /// Whether the program got the same one: a terminal sends Ctrl-C to all that run in its foreground.
    pub(super) program_knows: bool,
}

impl Asked {
    /// The time given by `--for` is over.
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
                    // A file that must not grow is an error where it is written, and not our end.
                    SIGXFSZ => continue,
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    _ => Signal::INT,
                };
                let program_knows = matches!(origin.cause, Cause::Kernel);
                if tell.send(Asked { signal, program_knows }).is_err() {
                    // There is no listener any more: the signal has its default action.
                    let _ = emulate_default_handler(origin.signal);
                }
            }
        };
        thread::Builder::new().name("signals".into()).spawn(body).context("a thread for signals")?;
        Ok(Signals { asked })
    }

    /// The next one, if one has come.
    pub(super) fn next(&self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }

    /// The next one, if one comes within this time. Returns as soon as it comes.
    pub(super) fn next_within(&self, time: Duration) -> Option<Asked> {
        match self.asked.recv_timeout(time) {
            Ok(asked) => Some(asked),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread for signals has ended, which it never should: no reason to spin.
                thread::sleep(time);
                None
            }
        }
    }
}
