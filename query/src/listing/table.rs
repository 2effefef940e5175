//! The line formats: fixed columns for people, tab and comma separated for programs.

use sigmund_model::Printable;
use sigmund_sql::ThreadNames;

use super::{EventRow, declarations::Declared, level_word, params};

/// The paper's columns. `pid` is the LWP, as in the paper.
pub(crate) const HEADER: [&str; 8] = ["type", "date_tick", "pid", "cpu", "thr", "code", "name", "params"];

/// The header of the human format, with `param(s)` as the paper's figures do.
pub(crate) fn human_header() -> String {
    let mut header = HEADER.map(String::from);
    header[7] = "param(s)".into();
    aligned(&header)
}

/// Appends one aligned line.
pub(crate) fn human(out: &mut String, row: &EventRow<'_>, ty: Option<&Declared<'_>>, threads: &ThreadNames) {
    let cells = COLUMNS.map(|column| {
        let mut cell = String::new();
        column.push(&mut cell, row, ty, threads);
        cell
    });
    out.push_str(&aligned(&cells));
}

fn aligned(cells: &[String; 8]) -> String {
    let [level, tick, pid, cpu, thr, code, name, params] = cells;
    let line = format!("{level:<4} {tick:>16} {pid:>7} {cpu:>3} {thr:<14} {code:>6} {name:<20} {params}");
    // `params` has already escaped the C0 controls of quoted texts, but not the other characters that a terminal
    // interprets.
    format!("{}\n", Printable(line.trim_end()))
}

/// Appends one tab separated line.
pub(crate) fn tsv(out: &mut String, row: &EventRow<'_>, ty: Option<&Declared<'_>>, threads: &ThreadNames) {
    for (place, column) in COLUMNS.into_iter().enumerate() {
        if place > 0 {
            out.push('\t');
        }
        column.push(out, row, ty, threads);
    }
    out.push('\n');
}

/// Appends one comma separated line.
pub(crate) fn csv(out: &mut String, row: &EventRow<'_>, ty: Option<&Declared<'_>>, threads: &ThreadNames) {
    for (place, column) in COLUMNS.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        let begin = out.len();
        column.push(out, row, ty, threads);
        let cell = &out[begin..];
        if cell.contains([',', '"', '\n', '\r']) {
            let quoted = format!("\"{}\"", cell.replace('"', "\"\""));
            out.truncate(begin);
            out.push_str(&quoted);
        }
    }
    out.push('\n');
}

/// A column, as [`HEADER`] names it.
#[derive(Clone, Copy)]
enum Column {
    Level,
    Tick,
    Lwp,
    Cpu,
    Thread,
    Code,
    Name,
    Params,
}

const COLUMNS: [Column; 8] = [
    Column::Level,
    Column::Tick,
    Column::Lwp,
    Column::Cpu,
    Column::Thread,
    Column::Code,
    Column::Name,
    Column::Params,
];

impl Column {
    /// Appends a cell. An unknown CPU, LWP or thread is `?`, an unknown code is `-`. No cell contains a tab or the end
    /// of a line.
    fn push(self, out: &mut String, row: &EventRow<'_>, ty: Option<&Declared<'_>>, threads: &ThreadNames) {
        let known = |out: &mut String, number: Option<u32>| match number {
            Some(number) => params::push_integer(out, number),
            None => out.push('?'),
        };
        match self {
            Column::Level => out.push_str(level_word(row.level)),
            Column::Tick => params::push_integer(out, row.tick.0),
            Column::Lwp => known(out, row.lwp.map(|lwp| lwp.0)),
            Column::Cpu => known(out, row.cpu.map(|cpu| cpu.0)),
            Column::Thread => params::push_thread(out, row.thread, threads),
            Column::Code => match row.code {
                Some(code) => params::push_integer(out, code),
                None => out.push('-'),
            },
            Column::Name => params::push_cell(out, row.name),
            Column::Params => params::push(out, row, ty, threads),
        }
    }
}
