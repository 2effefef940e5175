//! Names for events that a trace only numbers, supplied by the user.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use sigmund_model::{Field, FieldType, Level};

use crate::error::{Error, ErrorKind, ParseError};

/// Names and fields of events, by their codes: from a C header, or from a small TOML file.
///
/// ```text
///   #define FUT_RECEIVED_MSG 0x101          names a code; so does a line `{0x101, "received_msg"},`
/// ```
/// ```toml
/// [[event]]
/// code = 0x101
/// name = "received_msg"
/// level = "user"                            # or "kernel"; both, if it is left out
/// fields = ["len", "port: u16", "lwp: lwp", "from: text"]
/// ```
/// The type of a field is a type of [`FieldType`], or `lwp`: the LWP that recorded the event. The default is `u64`. A
/// `text` takes all remaining arguments, so it must be last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventNames {
    events: HashMap<(Level, u64), NamedEvent>,
}

/// The name and fields of one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedEvent {
    pub(crate) name: String,
    /// `None` if only the name is known.
    pub(crate) fields: Option<Vec<Field>>,
    /// The field that is the LWP that recorded the event.
    pub(crate) lwp_field: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Toml {
    #[serde(default)]
    event: Vec<TomlEvent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlEvent {
    code: u64,
    name: String,
    #[serde(default)]
    level: Option<TomlLevel>,
    #[serde(default)]
    fields: Option<Vec<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TomlLevel {
    User,
    Kernel,
}

impl EventNames {
    /// Reads a header or a TOML file; its content determines which.
    ///
    /// # Errors
    /// If it cannot be read, or is invalid TOML.
    pub fn read(path: &Path) -> Result<EventNames, Error> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        EventNames::parse(path, &String::from_utf8_lossy(&bytes))
    }

    /// Like [`read`](Self::read), from a text; `path` is used in messages.
    ///
    /// # Errors
    /// If it is invalid TOML.
    pub fn parse(path: &Path, text: &str) -> Result<EventNames, Error> {
        let defined: Vec<(&str, u64)> =
            text.lines().filter_map(|line| define(line).or(entry(line))).collect();
        if !defined.is_empty() {
            return Ok(EventNames::of_header(&defined));
        }
        let toml: Toml = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start as u64);
            let expected = "a header with #define, or TOML with [[event]]".to_owned();
            let found = e.message().to_owned();
            Error::at(ErrorKind::Damaged, path, ParseError { at, part: "event names", expected, found })
        })?;
        let mut names = EventNames::default();
        for event in toml.event {
            names.add(event).map_err(|found| {
                let expected = "a type of sigmund, or lwp".to_owned();
                let parse_error = ParseError { at: 0, part: "type of a field", expected, found };
                Error::at(ErrorKind::Damaged, path, parse_error)
            })?;
        }
        Ok(names)
    }

    /// Of two names for one code, the first one applies. Key masks are not codes.
    fn of_header(defined: &[(&str, u64)]) -> EventNames {
        let mut names = EventNames::default();
        for (name, code) in defined.iter().filter(|(name, _)| !name.contains("KEYMASK")) {
            for level in [Level::User, Level::Kern] {
                let event = NamedEvent { name: (*name).to_owned(), fields: None, lwp_field: None };
                names.events.entry((level, *code)).or_insert(event);
            }
        }
        names
    }

    fn add(&mut self, event: TomlEvent) -> Result<(), String> {
        let mut lwp_field = None;
        let mut fields = Vec::new();
        for (index, field) in event.fields.iter().flatten().enumerate() {
            let (name, ty) = field.split_once(':').unwrap_or((field, "u64"));
            let ty = match ty.trim() {
                "lwp" => {
                    lwp_field = Some(index);
                    FieldType::U32
                }
                ty => FieldType::from_name(ty).ok_or_else(|| format!("{ty:?}"))?,
            };
            fields.push(Field { name: name.trim().to_owned(), ty });
        }
        let levels: &[Level] = match event.level {
            Some(TomlLevel::User) => &[Level::User],
            Some(TomlLevel::Kernel) => &[Level::Kern],
            None => &[Level::User, Level::Kern],
        };
        let fields = event.fields.is_some().then_some(fields);
        let named = NamedEvent { name: event.name, fields, lwp_field };
        self.events.extend(levels.iter().map(|level| ((*level, event.code), named.clone())));
        Ok(())
    }

    pub(crate) fn get(&self, level: Level, code: u64) -> Option<&NamedEvent> {
        self.events.get(&(level, code))
    }
}

/// `#define NAME 0x1234`
fn define(line: &str) -> Option<(&str, u64)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
    let mut words = rest.split_whitespace();
    let (name, value) = (words.next()?, words.next()?);
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some((name, number(value)?))
}

/// `{0x1234, "name"},` as PM2's generated `fut_print.h` has it.
fn entry(line: &str) -> Option<(&str, u64)> {
    let (code, rest) = line.trim_start().strip_prefix('{')?.split_once(',')?;
    let name = rest.trim_start().strip_prefix('"')?.split_once('"')?.0;
    Some((name, number(code.trim())?))
}

/// A number in C; not an expression.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_matches(|c| c == '(' || c == ')').trim_end_matches(['u', 'U', 'l', 'L']);
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EventNames, Error> {
        EventNames::parse("names".as_ref(), text)
    }

    #[test]
    fn a_header_names_codes_and_nothing_else() {
        let header = "#define FUT_KEYMASK0 0x00000001\n# define  FUT_A\t0x101 /* P1 */\n#define FUT_CODE(c, n) 5\n\
             #define B (0x102UL)\n#define C FUT_A\n   {0x103, \"d\"},\n#define LATER 0x101\n";
        let names = parse(header).unwrap();
        let name = |code| names.get(Level::User, code).map(|e| e.name.as_str());
        assert_eq!((name(0x101), name(0x102), name(0x103)), (Some("FUT_A"), Some("B"), Some("d")));
        assert_eq!((name(1), name(5)), (None, None));
    }

    #[test]
    fn a_toml_gives_fields_with_types_and_an_error_names_the_wrong_part() {
        let toml = "[[event]]\ncode = 0x101\nname = \"msg\"\nlevel = \"user\"\n\
             fields = [\"len\", \"who: lwp\", \"from: text\"]\n";
        let names = parse(toml).unwrap();
        assert_eq!(names.get(Level::Kern, 0x101), None);
        let event = names.get(Level::User, 0x101).unwrap();
        let types: Vec<FieldType> = event.fields.iter().flatten().map(|f| f.ty).collect();
        assert_eq!(types, [FieldType::U64, FieldType::U32, FieldType::Text]);
        assert_eq!(event.lwp_field, Some(1));

        let wrong = parse("[[event]]\ncode = 1\nname = \"a\"\nfields = [\"b: u7\"]\n").unwrap_err();
        assert!(wrong.to_string().ends_with("expected a type of sigmund, or lwp, found \"u7\""), "{wrong}");
        let wrong = parse("[[event]]\ncode = 1\nnam = \"a\"\n").unwrap_err();
        assert!(wrong.offset().is_some_and(|at| at > 10) && wrong.to_string().contains("nam"), "{wrong}");
    }
}
