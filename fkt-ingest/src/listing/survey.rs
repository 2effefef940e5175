//! The pass over a listing when it is opened. It finds its header and damage, the positions where its lines go back in
//! time, and the objects that the lines name.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use sigmund_model::vocabulary::InterruptKind;
use sigmund_model::{Effect, Hertz, Level, Loss, LossKind, Reported, Thread};

use super::header::Header;
use super::lines::{LONGEST, Lines};
use super::ordered::{Limits, Ordered};
use super::row::{BadLine, Row};
use super::stretches::Stretches;
use super::types::{ListingTypes, thread_of};
use crate::error::Error;
use crate::input::Input;

/// The number of unreadable lines that have a row each; one more row counts the others.
const MAX_ROWS: u64 = 10_000;

/// The result of the pass.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) header: Header,
    pub(super) tick_hz: Option<Hertz>,
    pub(super) stretches: Stretches,
    pub(super) named: Named,
    pub(super) losses: Vec<Loss>,
}

/// The objects that lines name, collected in the order of time.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) types: ListingTypes,
    pub(super) threads: HashMap<Thread, Box<str>>,
    /// The kinds of interrupts whose exits are listed. If the exits of a kind are not listed, it is unknown which
    /// events are in the interrupt: then only its entry is.
    pub(super) exits: Vec<InterruptKind>,
}

impl Survey {
    /// Reads the lines of `input` once. `name` is used in messages. If the lines are not in the order of time, the
    /// objects that they name must still be collected.
    pub(super) fn of(input: &Input, name: &Path, limits: &Limits) -> Result<Survey, Error> {
        let start = byte_order_marks(input).map_err(|error| Error::io(name, error))?;
        let mut lines = Lines::new(input.clone(), start..input.len(), limits.block);
        let (mut tick_hz, mut header, mut losses, mut damaged) = (None, None, Vec::new(), 0);
        let mut stretches = Stretches::new(limits.stretches);
        let mut named = Named::default();
        for number in 1.. {
            let before = lines.position();
            if !lines.advance().map_err(|error| Error::io(name, error))? {
                break;
            }
            let line = String::from_utf8_lossy(lines.line());
            if let Some(comment) = line.strip_prefix('#') {
                tick_hz = tick_hz.or(tick_hz_of_comment(comment));
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            let Some(header) = &header else {
                let bad = |bad: BadLine| Error::in_line(name, number, bad.expected, bad.found);
                header = Some(Header::parse(&line).map_err(bad)?);
                continue;
            };
            match parse(header, &line, lines.is_too_long()) {
                Ok(row) => {
                    stretches.add(row.tick, before..lines.position());
                    if stretches.is_one() {
                        named.add(&row);
                    }
                }
                Err(bad) => {
                    damaged += 1;
                    if damaged <= MAX_ROWS {
                        losses.push(bad_line(name, number, &bad));
                    }
                }
            }
        }
        losses.extend(others(name, damaged));
        let Some(header) = header else {
            let expected = "a header line that names the columns".to_owned();
            return Err(Error::in_line(name, 1, expected, "the end of the file".to_owned()));
        };
        Ok(Survey { header, tick_hz, stretches, named, losses })
    }
}

impl Named {
    /// The objects that these lines name.
    pub(super) fn of(lines: &mut Ordered) -> io::Result<Named> {
        let mut named = Named::default();
        while lines.advance()? {
            if let Some(row) = lines.row(&String::from_utf8_lossy(lines.line())) {
                named.add(&row);
            }
        }
        Ok(named)
    }

    fn add(&mut self, row: &Row<'_>) {
        self.types.add(row);
        if let (Reported::Some(thread), Some(name)) = (row.thread, row.thread_name) {
            self.name(thread, name);
        }
        if let Some(param) = self.types.thread_param(row).and_then(|at| row.params.get(at))
            && let (Some(thread), Some(name)) = (thread_of(param), &param.text)
        {
            self.name(thread, name);
        }
        if row.level == Level::Kern
            && let (Effect::InterruptExit(_), Some(kind)) = self.types.effect(row)
            && !self.exits.contains(&kind)
        {
            self.exits.push(kind);
        }
    }

    fn name(&mut self, thread: Thread, name: &str) {
        let known = self.threads.entry(thread).or_default();
        if **known != *name {
            *known = name.into();
        }
    }
}

/// Reads a line, if it is not too long.
pub(super) fn parse<'l>(header: &Header, line: &'l str, is_too_long: bool) -> Result<Row<'l>, BadLine> {
    if is_too_long {
        return Err(BadLine::new(&format!("a line of at most {LONGEST} bytes"), line));
    }
    Row::parse(header, line)
}

/// The length of the byte-order marks with which some editors begin a file.
fn byte_order_marks(input: &Input) -> io::Result<u64> {
    const MARK: &[u8; 3] = b"\xef\xbb\xbf";
    let mut at = 0;
    let mut head = [0; MARK.len()];
    while input.read_at(at, &mut head)? == MARK.len() && head == *MARK {
        at += MARK.len() as u64;
    }
    Ok(at)
}

fn tick_hz_of_comment(comment: &str) -> Option<Hertz> {
    let value = comment.trim().strip_prefix("tick_hz")?.trim_start().strip_prefix('=')?;
    Hertz::new(value.trim().parse().ok()?)
}

/// One row for the lines without a row of their own.
fn others(name: &Path, damaged: u64) -> Option<Loss> {
    let count = damaged.checked_sub(MAX_ROWS).filter(|count| *count > 0)?;
    let detail = format!("{}: {count} more damaged lines", name.display());
    Some(Loss { count: Some(count), ..Loss::new(LossKind::Damaged, Level::User, detail) })
}

fn bad_line(name: &Path, number: u64, bad: &BadLine) -> Loss {
    let BadLine { expected, found } = bad;
    let detail = format!("{}: line {number}: expected {expected}, found {found}", name.display());
    Loss { count: Some(1), ..Loss::new(LossKind::Damaged, Level::User, detail) }
}
