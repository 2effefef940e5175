//! How a user names a user thread, an LWP or a process.

use std::{fmt, str::FromStr};

use sigmund_model::{Lwp, Pid, Thread};
use sigmund_sql::SuperTrace;

use crate::Error;

/// Prefix of a name that could be parsed as something else.
const NAME: &str = "name:";

/// Something that has a number, and usually a name.
pub trait Numbered: Copy + Ord + fmt::Display {
    /// The word for it in messages.
    const THING: &'static str;

    /// The number in this text; `None` if the text is no number.
    fn from_number(text: &str) -> Option<Self>;

    /// Calls `each` with all that have a name.
    ///
    /// # Errors
    /// When the trace cannot be read.
    fn each_name(trace: &SuperTrace, each: &mut dyn FnMut(Self, &str)) -> Result<(), Error>;
}

/// A reference by number or by name: `15`, `daemon`, or as a listing writes it, `1(daemon)`. After `name:` everything
/// is a name: `name:4` is the thread with the name 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference<N> {
    /// Its number.
    Number(N),
    /// Its exact name; several may have it. If none has it, it is a pattern in which `*` stands for any text.
    Name(String),
}

/// A user thread, by number or by name.
pub type ThreadRef = Reference<Thread>;

/// An LWP, by its tid or by its name.
pub type LwpRef = Reference<Lwp>;

/// A process, by its pid or by its name.
pub type ProcessRef = Reference<Pid>;

impl<N: Numbered> Reference<N> {
    /// All that match. A number is returned unchanged, even if the trace does not have it.
    pub(crate) fn resolve(&self, trace: &SuperTrace) -> Result<Vec<N>, Error> {
        let mut found = Vec::new();
        resolve_all(std::slice::from_ref(self), trace, &mut |_, number| found.push(number))?;
        Ok(found)
    }
}

/// Calls `each` with the place of each reference and with [all that match](Reference::resolve) it. The names of the trace are
/// looked at once for all references. Nothing found is kept: many references may match the same million threads.
pub(crate) fn resolve_all<N: Numbered>(
    references: &[Reference<N>],
    trace: &SuperTrace,
    each: &mut dyn FnMut(usize, N),
) -> Result<(), Error> {
    find_all(references, |each_name| N::each_name(trace, each_name), each)
}

/// `each_name` calls its argument with all that have a name.
fn find_all<N: Numbered>(
    references: &[Reference<N>],
    each_name: impl Fn(&mut dyn FnMut(N, &str)) -> Result<(), Error>,
    each: &mut dyn FnMut(usize, N),
) -> Result<(), Error> {
    let mut names = Vec::new();
    for (place, reference) in references.iter().enumerate() {
        match reference {
            Reference::Number(number) => each(place, *number),
            Reference::Name(name) => names.push((name.as_str(), place)),
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    names.sort_unstable();
    let mut is_exact = vec![false; references.len()];
    each_name(&mut |number, name| {
        let first = names.partition_point(|(other, _)| *other < name);
        for (_, place) in names[first..].iter().take_while(|(other, _)| *other == name) {
            is_exact[*place] = true;
            each(*place, number);
        }
    })?;
    names.retain(|(name, place)| !is_exact[*place] && name.contains('*'));
    if names.is_empty() {
        return Ok(());
    }
    each_name(&mut |number, name| {
        let fitting = names.iter().filter(|(pattern, _)| fits(pattern, name));
        fitting.for_each(|(_, place)| each(*place, number));
    })
}

impl Numbered for Thread {
    const THING: &'static str = "user thread";

    fn from_number(text: &str) -> Option<Thread> {
        text.trim().parse().ok().map(Thread)
    }

    fn each_name(trace: &SuperTrace, each: &mut dyn FnMut(Thread, &str)) -> Result<(), Error> {
        each_of(trace.threads()?.iter(), each)
    }
}

impl Numbered for Lwp {
    const THING: &'static str = "LWP";

    fn from_number(text: &str) -> Option<Lwp> {
        text.trim().parse().ok().map(Lwp)
    }

    fn each_name(trace: &SuperTrace, each: &mut dyn FnMut(Lwp, &str)) -> Result<(), Error> {
        each_of(trace.lwps()?.iter().map(|lwp| (lwp.lwp, lwp.name.as_deref())), each)
    }
}

impl Numbered for Pid {
    const THING: &'static str = "process";

    fn from_number(text: &str) -> Option<Pid> {
        text.trim().parse().ok().map(Pid)
    }

    fn each_name(trace: &SuperTrace, each: &mut dyn FnMut(Pid, &str)) -> Result<(), Error> {
        each_of(trace.lwps()?.processes(), each)
    }
}

fn each_of<'n, N>(
    all: impl Iterator<Item = (N, Option<&'n str>)>,
    each: &mut dyn FnMut(N, &str),
) -> Result<(), Error> {
    all.filter_map(|(number, name)| Some((number, name?))).for_each(|(number, name)| each(number, name));
    Ok(())
}

/// Whether a name matches a pattern, in which each `*` matches any text.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
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

impl<N: Numbered> FromStr for Reference<N> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Reference<N>, Error> {
        if let Some(name) = text.strip_prefix(NAME) {
            return Ok(Reference::Name(name.to_string()));
        }
        let number = text.split_once('(').filter(|_| text.ends_with(')')).map_or(text, |(number, _)| number);
        match N::from_number(number) {
            Some(number) => Ok(Reference::Number(number)),
            None if text.is_empty() => {
                Err(Error::argument(format!("{}: expected a number or a name, found nothing", N::THING)))
            }
            None => Ok(Reference::Name(text.to_string())),
        }
    }
}

impl<N: Numbered> fmt::Display for Reference<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Number(number) => number.fmt(f),
            Reference::Name(name) => match name.parse::<Reference<N>>() {
                Ok(Reference::Name(same)) if same == *name => f.write_str(name),
                _ => write!(f, "{NAME}{name}"),
            },
        }
    }
}

/// Several references, separated by commas. In a name, a comma is written `\,`, and a backslash before a comma `\\`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceList<N>(pub Vec<Reference<N>>);

/// User threads separated by commas.
pub type ThreadList = ReferenceList<Thread>;

/// LWPs separated by commas.
pub type LwpList = ReferenceList<Lwp>;

/// Processes separated by commas.
pub type ProcessList = ReferenceList<Pid>;

impl<N: Numbered> FromStr for ReferenceList<N> {
    type Err = Error;

    fn from_str(text: &str) -> Result<ReferenceList<N>, Error> {
        let (mut all, mut name) = (Vec::new(), String::new());
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                ',' => all.push(std::mem::take(&mut name).parse()?),
                '\\' => name.push(characters.next_if(|next| matches!(next, ',' | '\\')).unwrap_or(c)),
                _ => name.push(c),
            }
        }
        all.push(name.parse()?);
        Ok(ReferenceList(all))
    }
}

impl<N: Numbered> fmt::Display for ReferenceList<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, one) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}", one.to_string().replace('\\', "\\\\").replace(',', "\\,"))?;
        }
        Ok(())
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
    fn lwps_and_processes_are_named_likewise() {
        assert_eq!("70(server)".parse::<LwpRef>().unwrap(), LwpRef::Number(Lwp(70)));
        assert_eq!("kworker/*".parse::<LwpRef>().unwrap(), LwpRef::Name("kworker/*".into()));
        let expected = [
            ProcessRef::Number(Pid(7)),
            ProcessRef::Number(Pid(9)),
            ProcessRef::Name("8".into()),
            ProcessRef::Name("server".into()),
        ];
        assert_eq!("7, 9,name:8,server".parse::<ProcessList>().unwrap().0, expected);
        let list = r"a\,b,name:4,c\\";
        assert_eq!(list.parse::<LwpList>().unwrap().to_string(), list);
        let error = "7,,8".parse::<LwpList>().unwrap_err().to_string();
        assert!(error.contains("LWP: expected a number or a name"), "{error}");
    }

    // Five threads, two of which have the same name, and one has none.
    #[test]
    fn each_reference_finds_its_own_and_a_pattern_only_what_no_name_equals() {
        let threads =
            [(1, Some("work/1")), (2, Some("work*")), (3, Some("work/1")), (4, None), (5, Some(""))];
        let found = |references: &[&str]| -> Vec<Vec<u64>> {
            let references: Vec<ThreadRef> = references.iter().map(|one| one.parse().unwrap()).collect();
            let each_name = |each: &mut dyn FnMut(Thread, &str)| {
                each_of(threads.iter().map(|(number, name)| (Thread(*number), *name)), each)
            };
            let mut found = vec![Vec::new(); references.len()];
            find_all(&references, each_name, &mut |place, thread| found[place].push(thread.0)).unwrap();
            found
        };
        let none = Vec::new;
        assert_eq!(
            found(&["work/*", "9", "work/1", "name:", "none"]),
            [vec![1, 3], vec![9], vec![1, 3], vec![5], none()]
        );
        assert_eq!(found(&["work*", "w*", "work*", "x*"]), [vec![2], vec![1, 2, 3], vec![2], none()]);
        assert_eq!(found(&["4", "4"]), [[4], [4]]);
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
