//! How a user names a user thread.

use std::{fmt, str::FromStr};

use sigmund_model::Thread;
use sigmund_sql::ThreadNames;

use crate::Error;

/// A user thread, by number or by name: `15`, `daemon`, or as a listing writes it, `1(daemon)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadRef {
    /// Its number.
    Number(Thread),
    /// Its name, exactly. Several threads may have it.
    Name(String),
}

impl ThreadRef {
    /// The threads it stands for. A number stands for itself, whether the trace has it or not.
    pub(crate) fn resolve(&self, threads: &ThreadNames) -> Vec<Thread> {
        match self {
            ThreadRef::Number(thread) => vec![*thread],
            ThreadRef::Name(name) => threads.named(name),
        }
    }
}

impl FromStr for ThreadRef {
    type Err = Error;

    fn from_str(text: &str) -> Result<ThreadRef, Error> {
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

impl fmt::Display for ThreadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadRef::Number(thread) => thread.fmt(f),
            ThreadRef::Name(name) => f.write_str(name),
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
}
