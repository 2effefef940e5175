//! One line of a listing.

use sigmund_model::{Cpu, Level, Lwp, Reported, Thread};

use super::header::{Column, Header};
use super::params::{self, ListedParam};

/// The number of characters of an invalid text that an error shows.
const SHOWN: usize = 80;

/// One line, read.
#[derive(Debug)]
pub(super) struct Row<'l> {
    pub(super) level: Level,
    pub(super) tick: u64,
    pub(super) lwp: Option<Lwp>,
    pub(super) cpu: Option<Cpu>,
    pub(super) thread: Reported<Thread>,
    pub(super) thread_name: Option<&'l str>,
    pub(super) code: Option<u32>,
    pub(super) name: &'l str,
    pub(super) params: Vec<ListedParam<'l>>,
}

/// Why a line cannot be read.
#[derive(Debug)]
pub(super) struct BadLine {
    pub(super) expected: String,
    pub(super) found: String,
}

impl BadLine {
    pub(super) fn new(expected: &str, found: &str) -> BadLine {
        let shown = found.char_indices().nth(SHOWN).map_or(found, |(end, _)| &found[..end]);
        BadLine { expected: expected.into(), found: format!("{shown:?}") }
    }
}

impl<'l> Row<'l> {
    pub(super) fn parse(header: &Header, line: &'l str) -> Result<Row<'l>, BadLine> {
        let cells = header.cells(line)?;
        let level = match cells.of(Column::Type) {
            "KERN" => Level::Kern,
            "USER" => Level::User,
            other => return Err(bad("KERN or USER in column type", other)),
        };
        let name = cells.of(Column::Name);
        if name.is_empty() {
            return Err(bad("a name in column name", name));
        }
        let (thread, thread_name) = thread(cells.of(Column::Thr))?;
        let date_tick = cells.of(Column::DateTick);
        Ok(Row {
            level,
            tick: date_tick
                .parse()
                .ok()
                .filter(|tick| *tick <= i64::MAX as u64)
                .ok_or_else(|| bad("a tick in column date_tick", date_tick))?,
            lwp: number(cells.of(Column::Pid), "pid")?.map(Lwp),
            cpu: number(cells.of(Column::Cpu), "cpu")?.map(Cpu),
            thread,
            thread_name,
            code: number(cells.of(Column::Code), "code")?,
            name,
            params: params::parse(cells.of(Column::Params)),
        })
    }
}

/// A number that may be unknown: `-`, `?` or nothing.
fn number(cell: &str, column: &str) -> Result<Option<u32>, BadLine> {
    match cell {
        "" | "-" | "?" => Ok(None),
        _ => cell
            .parse()
            .ok()
            .filter(|n| *n <= i32::MAX as u32)
            .map(Some)
            .ok_or_else(|| bad(&format!("a number, - or ? in column {column}"), cell)),
    }
}

/// `15`, `8(work/6)`, `?` (none), `-` (unknown).
fn thread(cell: &str) -> Result<(Reported<Thread>, Option<&str>), BadLine> {
    let error = || bad("a thread such as 15 or 8(work/6), - or ? in column thr", cell);
    match cell {
        "" | "-" => return Ok((Reported::Nothing, None)),
        "?" | "0" => return Ok((Reported::None, None)),
        _ => {}
    }
    let (number, name) = match cell.split_once('(') {
        Some((number, name)) => (number, Some(name.strip_suffix(')').ok_or_else(error)?)),
        None => (cell, None),
    };
    let number: u64 = number.parse().ok().filter(|n| *n <= i64::MAX as u64).ok_or_else(error)?;
    Ok((Reported::Some(Thread(number)), name))
}

fn bad(expected: &str, found: &str) -> BadLine {
    BadLine::new(expected, found)
}
