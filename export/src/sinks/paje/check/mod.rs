//! Whether a file keeps the rules of Pajé 1.3: what pj_dump accepts, and what it lets pass.

mod events;
mod model;
mod words;

use std::{
    collections::HashMap,
    fmt,
    io::{self, BufRead},
};

use self::{
    events::{Definition, Event},
    model::Model,
    words::split,
};

/// What a file holds, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Lines.
    pub lines: u64,
    /// Events of the second part, by their names: `PajeSetState`.
    pub events: HashMap<&'static str, u64>,
    /// The first [`MOST_FAULTS`](Report::MOST_FAULTS) faults.
    pub faults: Vec<Fault>,
    /// How many more there were.
    pub more_faults: u64,
}

impl Report {
    /// So many faults are told one by one.
    pub const MOST_FAULTS: usize = 100;

    /// How many events of this name there were.
    pub fn count(&self, event: &str) -> u64 {
        self.events.get(event).copied().unwrap_or(0)
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// In which line, from 1. Of what is missing at the end: the last.
    pub line: u64,
    /// What it is.
    pub kind: FaultKind,
    /// What was expected and found.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The declaration of an event is not finished, lacks a field, or is of an event that Pajé does not have.
    Header,
    /// An event that is not declared.
    UnknownEvent,
    /// More or fewer fields than declared, or one that is no time, number or colour.
    Fields,
    /// Time goes back.
    TimeGoesBack,
    /// A type that was not defined.
    UndefinedType,
    /// A type that does not belong there: of another kind, or of another container type.
    WrongType,
    /// A container that was not created, or is destroyed.
    UndefinedContainer,
    /// A value that was not declared.
    UndeclaredValue,
    /// A name or an alias that is somebody else's.
    NameUsedTwice,
    /// A state is popped, and nothing is there.
    NothingToPop,
    /// A state was pushed and is there when its container is destroyed.
    NotPopped,
    /// A container is not destroyed.
    NotDestroyed,
    /// A link has only one end, or two that do not fit.
    LinkNotPaired,
}

/// A fault whose line is not said yet.
type Wrong = (FaultKind, String);

/// Longer lines are not read.
const LONGEST_LINE: u64 = 16 << 20;

/// Reads a file and says what is wrong with it. Memory grows with containers, values and open links.
///
/// pj_dump 1.3.6 says nothing when time goes back from one container to another, when what was pushed is not popped,
/// when a value is not declared, when a container is destroyed never or twice, when two containers or values have one
/// name, when a name with a blank stands without quotes or its quote does not end, when a time, a number or a colour is
/// none, and when the last declaration of an event does not end. (A pop with nothing to pop it does refuse.)
///
/// Where the format leaves a choice, this is strict: what is pushed is popped or reset, every container is destroyed,
/// values are declared, a link's start stands before its end. Not asked is that something was set before something is
/// pushed, which the format wants and nobody does. Not found is a link's key that is used again after its link: that
/// would take memory for each link, and pj_dump finds it.
///
/// # Errors
/// When it cannot be read. A file that is wrong is no error.
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

/// Reads a line without its end, and of one that is too long so much that this shows; `false` at the end.
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
    definitions: HashMap<String, Definition>,
    /// The one that is being declared, and its number.
    declaring: Option<(String, Definition)>,
    model: Model,
}

impl Checker {
    fn fault(&mut self, (kind, what): Wrong) {
        if self.report.faults.len() < Report::MOST_FAULTS {
            self.report.faults.push(Fault { line: self.report.lines, kind, what });
        } else {
            self.report.more_faults += 1;
        }
    }

    fn line(&mut self, line: &str) -> Result<(), Wrong> {
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

    fn declaration(&mut self, words: &[&str]) -> Result<(), Wrong> {
        let wrong = |what: String| Err((FaultKind::Header, what));
        match (self.declaring.take(), words) {
            (None, ["EventDef", name, number]) => {
                let event = Event::from_name(name)?;
                let number = (*number).to_string();
                let again = self.definitions.contains_key(&number);
                self.declaring = Some((number, Definition::new(event)));
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

    fn event(&mut self, number: &str, fields: &[&str]) -> Result<(), Wrong> {
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

    /// What is missing at the end.
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
