//! Parses the output of `babeltrace2`: event by event, field by field.

use std::path::Path;
use std::process::{Command, Stdio};

/// One printed event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    pub(crate) tick: u64,
    pub(crate) name: String,
    pub(crate) packet: Vec<(String, Value)>,
    pub(crate) context: Vec<(String, Value)>,
    pub(crate) fields: Vec<(String, Value)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `12`, `-1`, `0xFF`, `1343.89`
    Number(String),
    Text(String),
    /// `( "many" : container = 3 )`
    Named(String, String),
}

/// Whether babeltrace2 is installed; prints that the test is skipped if not.
pub(crate) fn is_installed() -> bool {
    let found = Command::new("babeltrace2").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        crate::skipped::skipped("babeltrace2 is not installed");
    }
    found
}

/// All events of the trace in a folder, which babeltrace2 must read without errors and warnings.
pub(crate) fn read(folder: &Path) -> Vec<Line> {
    let mut command = Command::new("babeltrace2");
    command.args(["--clock-cycles", "--no-delta", "--names=all", "--fields=all", "--color=never"]);
    let output = command.arg(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}: {errors}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rest = text.as_str();
    let mut lines = Vec::new();
    while !rest.is_empty() {
        lines.push(line(&mut rest));
    }
    lines
}

/// `timestamp = 00001450, trace = , , trace:domain = kernel, name = a, stream.packet.context = { pid = 70 }, …`
fn line(rest: &mut &str) -> Line {
    let tick = between(rest, "timestamp = ", ", ").parse().unwrap();
    between(rest, "", "name = ");
    let mut line = Line { tick, ..Line::default() };
    // A name is printed unchanged; the contexts follow.
    let end = rest
        .find(", stream.packet.context = {")
        .into_iter()
        .chain(rest.find(", stream.event.context = {"))
        .min();
    let (name, after) = rest.split_at(end.unwrap_or_else(|| panic!("{rest:?}")));
    line.name = name.to_owned();
    *rest = after;
    while skip(rest, ", ") {
        let group = match between(rest, "", " = {").as_str() {
            "stream.packet.context" => &mut line.packet,
            "stream.event.context" => &mut line.context,
            "event.fields" => &mut line.fields,
            other => panic!("{other:?}"),
        };
        *group = members(rest);
    }
    assert!(skip(rest, "\n"), "{rest:?}");
    line
}

fn members(rest: &mut &str) -> Vec<(String, Value)> {
    let mut members = Vec::new();
    skip(rest, " ");
    while !skip(rest, "}") {
        let name = between(rest, "", " = ");
        members.push((name, value(rest)));
        assert!(skip(rest, ", ") || skip(rest, " "), "{rest:?}");
    }
    members
}

fn value(rest: &mut &str) -> Value {
    if skip(rest, "( ") {
        // A number may have no label.
        let label = if skip(rest, "<unknown>") { None } else { Some(text(rest)) };
        let number = between(rest, " : container = ", " )");
        return label.map_or(Value::Number(number.clone()), |label| Value::Named(number, label));
    }
    if rest.starts_with('"') {
        return Value::Text(text(rest));
    }
    let end = rest.find([',', ' ']).unwrap();
    let (number, after) = rest.split_at(end);
    *rest = after;
    Value::Number(number.to_owned())
}

/// A text in quotes, with its escapes: those of C, and `\x1f`.
fn text(rest: &mut &str) -> String {
    assert!(skip(rest, "\""), "{rest:?}");
    let mut text = String::new();
    loop {
        let c = rest.chars().next().unwrap();
        *rest = &rest[c.len_utf8()..];
        match c {
            '"' => return text,
            '\\' => {
                let escaped = rest.chars().next().unwrap();
                *rest = &rest[escaped.len_utf8()..];
                text.push(match escaped {
                    'a' => '\x07',
                    'b' => '\x08',
                    'f' => '\x0c',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\x0b',
                    'x' => {
                        let (hex, after) = rest.split_at(2);
                        *rest = after;
                        u8::from_str_radix(hex, 16).unwrap() as char
                    }
                    other => other,
                });
            }
            c => text.push(c),
        }
    }
}

fn skip(rest: &mut &str, mark: &str) -> bool {
    let after = rest.strip_prefix(mark);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

/// Cuts the text between two marks.
fn between(rest: &mut &str, before: &str, after: &str) -> String {
    let cut = rest.strip_prefix(before).and_then(|rest| rest.split_once(after));
    let (found, left) =
        cut.unwrap_or_else(|| panic!("{before:?} and {after:?} in {:?}", &rest[..rest.len().min(200)]));
    *rest = left;
    found.to_owned()
}
