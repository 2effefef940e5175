//! The name of a row in the API: `cpu:0`, `lwp:1234`, `thread:15`.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

/// The kind of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Cpu,
    Lwp,
    #[default]
    Thread,
}

impl Kind {
    /// Its name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Lwp => "lwp",
            Kind::Thread => "thread",
        }
    }

    /// The kind with this name in the API.
    pub(crate) fn from_name(word: &str) -> Option<Kind> {
        [Kind::Cpu, Kind::Lwp, Kind::Thread].into_iter().find(|kind| kind.name() == word)
    }
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) number: u64,
}

impl Key {
    /// The key of a CPU.
    pub(crate) fn cpu(number: u32) -> Key {
        Key { kind: Kind::Cpu, number: number.into() }
    }

    /// The key of an LWP.
    pub(crate) fn lwp(number: u32) -> Key {
        Key { kind: Kind::Lwp, number: number.into() }
    }

    /// The key of a user thread.
    pub(crate) fn thread(number: u64) -> Key {
        Key { kind: Kind::Thread, number }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.number)
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Key, String> {
        let parts = text.split_once(':');
        let key = parts.and_then(|(kind, number)| {
            let (kind, number) = (Kind::from_name(kind)?, number.parse().ok()?);
            let is_small = kind == Kind::Thread || u32::try_from(number).is_ok();
            is_small.then_some(Key { kind, number })
        });
        key.ok_or_else(|| format!("expected cpu:N, lwp:N or thread:N, found `{text}`"))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for text in ["cpu:0", "lwp:4294967295", "thread:18446744073709551615"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for wrong in ["", "cpu", "cpu:", "cpu:-1", "lwp:4294967296", "fiber:1", "thread:1:2"] {
            assert!(wrong.parse::<Key>().is_err(), "{wrong}");
        }
    }
}
