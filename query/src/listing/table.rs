//! The line formats: fixed columns for people, tab and comma separated for programs.

use sigmund_model::{EventType, Printable};
use sigmund_sql::ThreadNames;

use super::{EventRow, level_word, params};

/// The paper's columns. `pid` is the LWP, as in the paper.
pub(crate) const HEADER: [&str; 8] = ["type", "date_tick", "pid", "cpu", "thr", "code", "name", "params"];

/// The header of the human format, with `param(s)` as the paper's figures do.
pub(crate) fn human_header() -> String {
    let mut header = HEADER.map(String::from);
    header[7] = "param(s)".into();
    aligned(&header)
}

/// Appends one aligned line.
pub(crate) fn human(out: &mut String, row: &EventRow<'_>, ty: Option<&EventType>, threads: &ThreadNames) {
    out.push_str(&aligned(&cells(row, ty, threads)));
}

fn aligned(cells: &[String; 8]) -> String {
    let [level, tick, pid, cpu, thr, code, name, params] = cells;
    let line = format!("{level:<4} {tick:>16} {pid:>7} {cpu:>3} {thr:<14} {code:>6} {name:<20} {params}");
    // A quoted text has its C0 controls escaped, but not the other characters that a terminal interprets.
    format!("{}\n", Printable(line.trim_end()))
}

/// Appends one tab separated line.
pub(crate) fn tsv(out: &mut String, row: &EventRow<'_>, ty: Option<&EventType>, threads: &ThreadNames) {
    out.push_str(&cells(row, ty, threads).join("\t"));
    out.push('\n');
}

/// Appends one comma separated line.
pub(crate) fn csv(out: &mut String, row: &EventRow<'_>, ty: Option<&EventType>, threads: &ThreadNames) {
    let cells = cells(row, ty, threads).map(|cell| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    });
    out.push_str(&cells.join(","));
    out.push('\n');
}

/// Unknown places are `?`, an unknown code is `-`. No cell holds a tab or an end of line.
fn cells(row: &EventRow<'_>, ty: Option<&EventType>, threads: &ThreadNames) -> [String; 8] {
    let known = |number: Option<u32>| number.map_or("?".to_string(), |n| n.to_string());
    let mut thr = String::new();
    params::push_thread(&mut thr, row.thread, threads);
    let mut name = String::new();
    params::push_cell(&mut name, row.name);
    let mut parameters = String::new();
    params::push(&mut parameters, row, ty, threads);
    [
        level_word(row.level).to_string(),
        row.tick.0.to_string(),
        known(row.lwp.map(|l| l.0)),
        known(row.cpu.map(|c| c.0)),
        thr,
        row.code.map_or("-".to_string(), |c| c.to_string()),
        name,
        parameters,
    ]
}
