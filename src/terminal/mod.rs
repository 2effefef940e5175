//! Prints everything. This is the only module that opens stdout and stderr (`clippy.toml` enforces that).
//!
//! ```text
//! for people     line, block, notice, report_error, Progress   names of others cannot steer the terminal, or forge a line
//! for programs   data                                    bytes as they are: CSV, JSON, what a viewer reads
//! ```
//! Names of threads, commands, events and files, and the errors of a traced process, are untrusted. For people, they
//! are printed as [`Printable`].
#![expect(clippy::disallowed_methods, reason = "the only place that opens stdout and stderr")]

#[cfg(feature = "sql")]
mod drawn;

use std::{
    fmt::Display,
    io::{self, BufWriter, IsTerminal, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use sigmund_model::Printable;

#[cfg(feature = "sql")]
pub(crate) use drawn::{Colour, Pages, coloured, paged};

/// Lines that are kept until all of them can go to a pager; see `Pages`.
static KEPT: Mutex<Option<String>> = Mutex::new(None);

/// Prints one line on stdout, for people. A line break in `text` is shown as `\n`.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    let text = format!("{}\n", Printable(text));
    if let Some(kept) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        kept.push_str(&text);
        return Ok(());
    }
    Stdout.write_all(text.as_bytes())
}

/// Prints several lines on stdout, for people: a table that has been drawn. Cells must not contain line breaks.
pub(crate) fn block(text: &str) -> io::Result<()> {
    if let Some(kept) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        text.lines().for_each(|line| kept.extend([Printable(line).to_string().as_str(), "\n"]));
        return Ok(());
    }
    let out = &mut BufWriter::new(Stdout);
    text.lines().try_for_each(|line| writeln!(out, "{}", Printable(line)))?;
    out.flush()
}

/// The columns and lines of a terminal. `None` if stdout is no terminal, or they are unknown.
fn size(stdout: &io::Stdout) -> Option<rustix::termios::Winsize> {
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(size)
}

/// Whether lines for people go to a pager, which can scroll long lines.
pub(crate) fn is_for_pager() -> bool {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// The columns of stdout, if it is a terminal.
pub(crate) fn width() -> Option<usize> {
    size(&io::stdout()).map(|size| size.ws_col.into())
}

/// Stdout for programs. Bytes are written unchanged.
pub(crate) fn data() -> BufWriter<Stdout> {
    BufWriter::with_capacity(1 << 16, Stdout)
}

/// Standard output. Its errors say that they are about standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(of_stdout)
    }
}

fn of_stdout(error: io::Error) -> io::Error {
    match error.kind() {
        // The caller repeats the call.
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("standard output: {error}")),
    }
}

/// Prints a message on stderr, always on one line.
pub(crate) fn notice(text: &str) {
    // If stderr is closed, the message is lost.
    let _ = writeln!(io::stderr(), "sigmund: {}", Printable(text));
}

/// Whether an error was reported.
static HAS_REPORTED_ERRORS: AtomicBool = AtomicBool::new(false);

/// Whether [`report_error`] was called. The exit status is then 2.
pub(crate) fn has_reported_errors() -> bool {
    HAS_REPORTED_ERRORS.load(Ordering::Relaxed)
}

/// Prints an error on stderr, on one line. The command continues, and its exit status is 2.
pub(crate) fn report_error(text: &str) {
    HAS_REPORTED_ERRORS.store(true, Ordering::Relaxed);
    notice(&format!("error: {text}"));
}

/// Prints clap's error about the command line, which may have several lines, and a tip.
pub(crate) fn usage(error: &clap::Error, tip: Option<&str>) {
    for line in error.render().to_string().lines().chain(tip) {
        let _ = writeln!(io::stderr(), "{}", Printable(line));
    }
}

/// A line that is overwritten again and again, on a terminal. Elsewhere nothing is printed.
pub(crate) struct Progress {
    on: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { on: io::stderr().is_terminal() }
    }

    pub(crate) fn show(&self, text: &str) {
        if self.on {
            let _ = write!(io::stderr(), "\r\x1b[Ksigmund: {}", Printable(text));
        }
    }

    pub(crate) fn clear(&self) {
        if self.on {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
