//! What the command prints, and the only place that opens stdout and stderr (`clippy.toml` holds the rest to it).
//!
//! ```text
//! for people     line, block, notice, report_error, Progress   names of others cannot steer the terminal, or forge a line
//! for programs   data                                    bytes as they are: CSV, JSON, what a viewer reads
//! ```
//! Names of threads, commands, events and files, and the errors of a traced process, are chosen by others: for people
//! they are shown as [`Printable`] shows them.
#![expect(clippy::disallowed_methods, reason = "the only place that opens stdout and stderr")]

use std::{
    fmt::Display,
    io::{self, BufWriter, IsTerminal, Write},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use sigmund_model::Printable;

/// Prints one line on stdout, for people. A line break in `text` is shown as `\n`.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    writeln!(Stdout, "{}", Printable(text))
}

/// Prints several lines on stdout, for people: a table that has been drawn. Cells must not hold line breaks.
pub(crate) fn block(text: &str) -> io::Result<()> {
    let out = &mut BufWriter::new(Stdout);
    text.lines().try_for_each(|line| writeln!(out, "{}", Printable(line)))?;
    out.flush()
}

/// As [`block`]; on a terminal that it does not fit, by `$PAGER`, or `less`.
pub(crate) fn paged(text: &str) -> io::Result<()> {
    let stdout = io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let fits = size.is_none_or(|size| {
        text.lines().count() < usize::from(size.ws_row)
            && text.lines().all(|line| line.chars().count() <= usize::from(size.ws_col))
    });
    if fits || !stdout.is_terminal() {
        return block(text);
    }
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| "less -S".to_string());
    let child = Command::new("sh").arg("-c").arg(pager).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return block(text) };
    let mut status = Ok(());
    if let Some(mut pipe) = child.stdin.take() {
        status = text.lines().try_for_each(|line| writeln!(pipe, "{}", Printable(line)));
    }
    let is_shown = child.wait().is_ok_and(|ended| ended.code() != Some(NOT_FOUND));
    match status {
        _ if !is_shown => block(text),
        // The pager may end early.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Exit status of a shell that does not find the command.
const NOT_FOUND: i32 = 127;

/// Colours that every terminal has, by their number for the foreground (ECMA-48, SGR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Magenta = 35,
    Cyan = 36,
}

/// As [`block`]; on a terminal, `colour` gives each character of a line its colour. `NO_COLOR` and `TERM=dumb` switch colours
/// off.
pub(crate) fn coloured(text: &str, colour: &dyn Fn(&str) -> Vec<Option<Colour>>) -> io::Result<()> {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if is_off || !io::stdout().is_terminal() {
        return block(text);
    }
    let out = &mut BufWriter::new(Stdout);
    for line in text.lines() {
        // What others chose is made printable before colours are added.
        let line = Printable(line).to_string();
        let mut last = None;
        for (character, colour) in line.chars().zip(colour(&line)) {
            if colour != last {
                write!(out, "\x1b[{}m", colour.map_or(0, |colour| colour as u8))?;
                last = colour;
            }
            write!(out, "{character}")?;
        }
        writeln!(out, "{}", if last.is_some() { "\x1b[0m" } else { "" })?;
    }
    out.flush()
}

/// Stdout for what programs read. Bytes are printed as they are.
pub(crate) fn data() -> BufWriter<Stdout> {
    BufWriter::with_capacity(1 << 16, Stdout)
}

/// Standard output; its errors name it.
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
        // The caller tries again.
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("standard output: {error}")),
    }
}

/// Prints a message on stderr: one line, whatever it holds.
pub(crate) fn notice(text: &str) {
    // If stderr is closed, the message is lost.
    let _ = writeln!(io::stderr(), "sigmund: {}", Printable(text));
}

/// Whether an error was reported.
static HAS_REPORTED_ERRORS: AtomicBool = AtomicBool::new(false);

/// Whether [`report_error`] was called: the exit status is 2 then.
pub(crate) fn has_reported_errors() -> bool {
    HAS_REPORTED_ERRORS.load(Ordering::Relaxed)
}

/// Prints an error on stderr, on one line. The command continues, and its exit status is 2.
pub(crate) fn report_error(text: &str) {
    HAS_REPORTED_ERRORS.store(true, Ordering::Relaxed);
    notice(&format!("error: {text}"));
}

/// Prints clap's error about the command line, which has several lines.
pub(crate) fn usage(error: &clap::Error) {
    for line in error.render().to_string().lines() {
        let _ = writeln!(io::stderr(), "{}", Printable(line));
    }
}

/// A line that is written over and over, on a terminal; nothing elsewhere.
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
