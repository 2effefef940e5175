//! What fills more than the screen, and what has colours.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    process::{Command, Stdio},
    sync::PoisonError,
};

use sigmund_model::Printable;

use super::{KEPT, Stdout, block, size};

/// Lines for people, of several calls, that go to a pager together.
#[must_use]
pub(crate) struct Pages(());

impl Pages {
    /// What is printed for people from here on is kept.
    pub(crate) fn begin() -> Pages {
        *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
        Pages(())
    }

    /// Shows it as [`paged`] does. Without this call, it is not shown.
    pub(crate) fn end(self) -> io::Result<()> {
        let text = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
        paged(&text.unwrap_or_default())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// As [`block`]; on a terminal that it does not fit, by `$PAGER`, or `less`.
pub(crate) fn paged(text: &str) -> io::Result<()> {
    let stdout = io::stdout();
    let size = size(&stdout);
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
