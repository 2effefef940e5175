//! Output that may not fit on the screen, and output with colours.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    process::{Command, Stdio},
    sync::PoisonError,
};

use sigmund_model::Printable;

use super::{KEPT, Stdout, block, size};

/// Collects the lines for people from several calls, so that they go to a pager together.
#[must_use]
pub(crate) struct Pages(());

impl Pages {
    /// From now on, lines for people are kept.
    pub(crate) fn begin() -> Pages {
        *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
        Pages(())
    }

    /// Shows the kept lines as [`paged`] does. Without this call, they are not shown.
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

/// As [`block`]. On a terminal that is too small for it, by `$PAGER` or `less`.
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
        // The pager may end before it has read everything.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// The exit status of a shell that does not find the command.
const NOT_FOUND: i32 = 127;

/// Colours that every terminal has. The numbers set the foreground (ECMA-48, SGR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Magenta = 35,
    Cyan = 36,
}

/// As [`block`]. On a terminal, `colour` gives the colour of each character of a line. `NO_COLOR` and `TERM=dumb`
/// switch colours off.
pub(crate) fn coloured(text: &str, colour: &dyn Fn(&str) -> Vec<Option<Colour>>) -> io::Result<()> {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if is_off || !io::stdout().is_terminal() {
        return block(text);
    }
    let out = &mut BufWriter::new(Stdout);
    for line in text.lines() {
        // Untrusted text is made printable before colours are added.
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
