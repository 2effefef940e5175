//! Checks whether a file obeys the rules of Pajé 1.3. Stricter than pj_dump: see [`check`].

mod events;
mod model;
mod words;

use std::{
    collections::HashMap,
    fmt,
    io::{self, BufRead},
};

use self::{
    events::{Event, EventDeclaration},
    model::Model,
    words::split,
};

/// Counts of a file's lines and events, and its faults.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of lines.
    pub lines: u64,
    /// Number of events of the second part by name, such as `PajeSetState`.
    pub events: HashMap<&'static str, u64>,
    /// The first [`MOST_FAULTS`](Report::MOST_FAULTS) faults.
    pub faults: Vec<Fault>,
    /// Number of further faults.
    pub more_faults: u64,
}

impl Report {
    /// Maximum number of faults that are described; further ones are only counted.
    pub const MOST_FAULTS: usize = 100;

    /// Number of events of this name.
    pub fn count(&self, event: &str) -> u64 {
        self.events.get(event).copied().unwrap_or(0)
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1. Elements missing at the end of the file are reported for the last line.
    pub line: u64,
    /// The rule that was violated.
    pub kind: FaultKind,
    /// The expected and the actual contents.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The rules of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The declaration of an event has no end, lacks a field, or declares an event that Pajé does not have.
    Header,
    /// An event that is not declared.
    UnknownEvent,
    /// More or fewer fields than declared, or one that is not a valid time, number or colour.
    Fields,
    /// Time decreases.
    TimeGoesBack,
    /// A type that was not defined.
    UndefinedType,
    /// A type of another kind, or of another container type.
    WrongType,
    /// A container that was not created, or has been destroyed.
    UndefinedContainer,
    /// A value that was not declared.
    UndeclaredValue,
    /// A name or an alias that is already in use.
    NameUsedTwice,
    /// A state is popped from an empty stack.
    NothingToPop,
    /// A pushed state is not popped before its container is destroyed.
    NotPopped,
    /// A container is never destroyed.
    NotDestroyed,
    /// A link has only one end, or two that do not match.
    LinkNotPaired,
}

impl FaultKind {
    /// The name of the rule, such as `time-goes-back`.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Header => "header",
            FaultKind::UnknownEvent => "unknown-event",
            FaultKind::Fields => "fields",
            FaultKind::TimeGoesBack => "time-goes-back",
            FaultKind::UndefinedType => "undefined-type",
            FaultKind::WrongType => "wrong-type",
            FaultKind::UndefinedContainer => "undefined-container",
            FaultKind::UndeclaredValue => "undeclared-value",
            FaultKind::NameUsedTwice => "name-used-twice",
            FaultKind::NothingToPop => "nothing-to-pop",
            FaultKind::NotPopped => "not-popped",
            FaultKind::NotDestroyed => "not-destroyed",
            FaultKind::LinkNotPaired => "link-not-paired",
        }
    }
}

/// Whether a file that begins with these bytes is a Pajé file: the first line that is neither empty nor a comment must
/// declare an event.
pub fn is_paje(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let declaration = first.and_then(|line| line.strip_prefix(b"%")).map(<[u8]>::trim_ascii_start);
    declaration.is_some_and(|declaration| declaration.starts_with(b"EventDef"))
}

/// A fault without its line number, which the caller adds.
type LineFault = (FaultKind, String);

/// Maximum length of a line, in bytes. Longer lines are reported and not parsed.
const LONGEST_LINE: u64 = 16 << 20;

/// Reads a file and reports its faults. Memory grows with containers, values and open links, not with events.
///
/// pj_dump 1.3.6 does not report: a time that decreases from one container to another, a pushed state that is not
/// popped, an undeclared value, a container that is never destroyed or destroyed twice, two containers or values with
/// the same name, a name with a blank and without quotes or without its closing quote, an invalid time, number or
/// colour, and an unterminated last declaration. (It reports a pop from an empty stack.)
///
/// Where the format leaves a choice, this check is strict: a pushed state must be popped or reset, every container must
/// be destroyed, values must be declared, and a link's start must precede its end. It does not require that a state is
/// set before one is pushed, which the format demands and no program does. It does not find a second link that reuses
/// the key of a link that has ended: that would take memory for each link, and pj_dump reports it.
///
/// # Errors
/// If the file cannot be read. A fault in the file is not an error.
pub fn check(mut input: impl BufRead) -> io::Result<Report> {
    let mut checker = Checker::default();
    let mut line = Vec::new();
    while read_line(&mut input, &mut line)? {
        checker.report.lines += 1;
        if line.len() as u64 > LONGEST_LINE {
            checker.fault((FaultKind::Fields, format!("expected at most {LONGEST_LINE} bytes, found more")));
            continue;
        }
        if let Err(wrong) = checker.line(&String::from_utf8_lossy(&line)) {
            checker.fault(wrong);
        }
    }
    checker.end();
    Ok(checker.report)
}

/// Reads a line without its end; of a line that is too long, one byte more than [`LONGEST_LINE`]. Returns `false` at
/// the end of the file.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if io::Read::take(&mut *input, LONGEST_LINE + 1).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > LONGEST_LINE {
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

#[derive(Default)]
struct Checker {
    report: Report,
    definitions: HashMap<String, EventDeclaration>,
    /// The declaration in progress, and its number.
    declaring: Option<(String, EventDeclaration)>,
    model: Model,
}

impl Checker {
    fn fault(&mut self, (kind, what): LineFault) {
        if self.report.faults.len() < Report::MOST_FAULTS {
            self.report.faults.push(Fault { line: self.report.lines, kind, what });
        } else {
            self.report.more_faults += 1;
        }
    }

    fn line(&mut self, line: &str) -> Result<(), LineFault> {
        let words = split(line)?;
        match words.as_slice() {
            [] => Ok(()),
            ["%", rest @ ..] => self.declaration(rest),
            [first, rest @ ..] if first.starts_with('%') => {
                let words: Vec<&str> = std::iter::once(&first[1..]).chain(rest.iter().copied()).collect();
                self.declaration(&words)
            }
            [number, fields @ ..] => self.event(number, fields),
        }
    }

    fn declaration(&mut self, words: &[&str]) -> Result<(), LineFault> {
        let wrong = |what: String| Err((FaultKind::Header, what));
        match (self.declaring.take(), words) {
            (None, ["EventDef", name, number]) => {
                let event = Event::from_name(name)?;
                let number = (*number).to_string();
                let again = self.definitions.contains_key(&number);
                self.declaring = Some((number, EventDeclaration::new(event)));
                if again { wrong(format!("event {} is declared twice", words[2])) } else { Ok(()) }
            }
            (None, _) => wrong(format!("expected EventDef, a name and a number, found {words:?}")),
            (Some((number, definition)), ["EndEventDef"]) => {
                let missing = definition.missing();
                let name = definition.event.name();
                self.definitions.insert(number, definition);
                if missing.is_empty() {
                    return Ok(());
                }
                wrong(format!("{name} lacks the fields {missing:?}"))
            }
            (Some((number, mut definition)), [field, ty]) => {
                let added = definition.add(field, ty);
                self.declaring = Some((number, definition));
                added
            }
            (Some((number, definition)), _) => {
                let name = definition.event.name();
                self.declaring = Some((number, definition));
                wrong(format!("in {name}: expected a field and its type, or EndEventDef, found {words:?}"))
            }
        }
    }

    fn event(&mut self, number: &str, fields: &[&str]) -> Result<(), LineFault> {
        if let Some((_, definition)) = self.declaring.take() {
            let what = format!("the declaration of {} has no EndEventDef", definition.event.name());
            self.fault((FaultKind::Header, what));
        }
        let Some(definition) = self.definitions.get(number) else {
            return Err((FaultKind::UnknownEvent, format!("event {number} is not declared")));
        };
        let name = definition.event.name();
        *self.report.events.entry(name).or_default() += 1;
        let fields = definition.fields(fields)?;
        self.model.event(definition.event, &fields).map_err(|(kind, what)| (kind, format!("{name}: {what}")))
    }

    /// Reports elements missing at the end of the file.
    fn end(&mut self) {
        if let Some((_, definition)) = &self.declaring {
            let what = format!("the declaration of {} has no EndEventDef", definition.event.name());
            self.fault((FaultKind::Header, what));
        }
        for wrong in self.model.missing() {
            self.fault(wrong);
        }
    }
}
