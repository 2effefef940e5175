//! How a user names a user thread.

use std::{fmt, str::FromStr};

use sigmund_model::Thread;
use sigmund_sql::SuperTrace;

use crate::Error;

/// Prefix of a name that could be parsed as something else.
const NAME: &str = "name:";

/// A user thread, by number or by name: `15`, `daemon`, or as a listing writes it, `1(daemon)`. After `name:` everything is
/// a name: `name:4` is the thread that is called 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadRef {
    /// Its number.
    Number(Thread),
    /// Its name, exactly, and several threads may have it; or, if none has, a pattern in which `*` stands for any text.
    Name(String),
}

impl ThreadRef {
    /// The threads that match. A number is returned as is, whether the trace has that thread or not.
    pub(crate) fn resolve(&self, trace: &SuperTrace) -> Result<Vec<Thread>, Error> {
        let name = match self {
            ThreadRef::Number(thread) => return Ok(vec![*thread]),
            ThreadRef::Name(name) => name,
        };
        let threads = trace.threads()?;
        let named = threads.named(name);
        if !named.is_empty() || !name.contains('*') {
            return Ok(named);
        }
        let fits = |thread_name: Option<&str>| thread_name.is_some_and(|other| fits(name, other));
        Ok(threads.iter().filter(|(_, name)| fits(*name)).map(|(thread, _)| thread).collect())
    }
}

impl FromStr for ThreadRef {
    type Err = Error;

    fn from_str(text: &str) -> Result<ThreadRef, Error> {
        if let Some(name) = text.strip_prefix(NAME) {
            return Ok(ThreadRef::Name(name.to_string()));
        }
        let number = text.split_once('(').filter(|_| text.ends_with(')')).map_or(text, |(number, _)| number);
        match number.parse() {
            Ok(number) => Ok(ThreadRef::Number(Thread(number))),
            Err(_) if text.is_empty() => {
                Err(Error::argument("thread: expected a number or a name, found nothing"))
            }
            Err(_) => Ok(ThreadRef::Name(text.to_string())),
        }
    }
}

/// Whether a name matches a pattern, in which each `*` matches any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut rest = rest;
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

/// Threads separated by commas. A comma in a name is written `\,`, and a backslash before one `\\`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadList(pub Vec<ThreadRef>);

impl FromStr for ThreadList {
    type Err = Error;

    fn from_str(text: &str) -> Result<ThreadList, Error> {
        let (mut threads, mut name) = (Vec::new(), String::new());
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                ',' => threads.push(std::mem::take(&mut name).parse()?),
                '\\' => name.push(characters.next_if(|next| matches!(next, ',' | '\\')).unwrap_or(c)),
                _ => name.push(c),
            }
        }
        threads.push(name.parse()?);
        Ok(ThreadList(threads))
    }
}

impl fmt::Display for ThreadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadRef::Number(thread) => thread.fmt(f),
            ThreadRef::Name(name) => match name.parse() {
                Ok(ThreadRef::Name(same)) if same == *name => f.write_str(name),
                _ => write!(f, "{NAME}{name}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_a_number_a_name_or_both() {
        assert_eq!("15".parse::<ThreadRef>().unwrap(), ThreadRef::Number(Thread(15)));
        assert_eq!("8(work/6)".parse::<ThreadRef>().unwrap(), ThreadRef::Number(Thread(8)));
        assert_eq!("daemon".parse::<ThreadRef>().unwrap(), ThreadRef::Name("daemon".into()));
        assert_eq!("work(6)".parse::<ThreadRef>().unwrap(), ThreadRef::Name("work(6)".into()));
        assert!("".parse::<ThreadRef>().is_err());
    }

    #[test]
    fn any_name_can_be_written_and_is_shown_so_that_it_can_be_read_again() {
        for name in ["4", "", "8(work)", "name:4", "a,b", "daemon", "name:"] {
            let thread = ThreadRef::Name(name.into());
            assert_eq!(format!("name:{name}").parse::<ThreadRef>().unwrap(), thread);
            assert_eq!(thread.to_string().parse::<ThreadRef>().unwrap(), thread, "{thread}");
        }
        assert_eq!(ThreadRef::Name("daemon".into()).to_string(), "daemon");
    }

    #[test]
    fn a_star_in_a_pattern_matches_any_text() {
        let names = ["work/1", "work/22", "worker", "rework/1", ""];
        let fitting =
            |pattern: &str| names.into_iter().filter(|name| fits(pattern, name)).collect::<Vec<_>>();
        assert_eq!(fitting("work/*"), ["work/1", "work/22"]);
        assert_eq!(fitting("*work*1"), ["work/1", "rework/1"]);
        assert_eq!(fitting("*"), names);
        assert_eq!(fitting("w*k*k*"), [""; 0]);
        assert_eq!(fitting("work"), [""; 0]);
    }

    #[test]
    fn threads_in_a_list_are_separated_by_commas_that_have_no_backslash() {
        let names = |text: &str| -> Vec<String> {
            text.parse::<ThreadList>().unwrap().0.iter().map(ToString::to_string).collect()
        };
        assert_eq!(names("1,daemon,name:4"), ["1", "daemon", "name:4"]);
        assert_eq!(names(r"a\,b,c"), ["a,b", "c"]);
        assert_eq!(names(r"a\\,b\c\"), [r"a\", r"b\c\"]);
        assert!("1,,2".parse::<ThreadList>().is_err());
    }
}
