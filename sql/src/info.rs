//! The table `info`: facts about the recording, and the keys that this program reads.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    str::FromStr,
};

use sigmund_model::{
    Hertz, Ticks,
    tables::{SCHEMA_VERSION, info_keys},
};

use crate::{Error, ErrorKind};

/// Facts about the recording, by key.
#[derive(Clone, Debug)]
pub struct Info {
    table: PathBuf,
    facts: BTreeMap<String, String>,
    tick_hz: Option<Hertz>,
    first_tick: Option<Ticks>,
    last_tick: Option<Ticks>,
}

impl Info {
    /// Checks the facts that are used in calculations.
    pub(crate) fn new(table: &Path, facts: BTreeMap<String, String>) -> Result<Info, Error> {
        check_version(table, &facts)?;
        let tick_hz = match number::<f64>(table, &facts, info_keys::TICK_HZ)? {
            None => None,
            Some(hz) => Some(Hertz::new(hz).ok_or_else(|| {
                Error::at(ErrorKind::Schema, table, format!("tick_hz: expected a positive rate, found {hz}"))
            })?),
        };
        let tick = |key| number(table, &facts, key).map(|t| t.map(Ticks));
        let (first_tick, last_tick) = (tick(info_keys::FIRST_TICK)?, tick(info_keys::LAST_TICK)?);
        Ok(Info { table: table.to_path_buf(), facts, tick_hz, first_tick, last_tick })
    }

    /// The value of a key: one of `sigmund_model::tables::info_keys`, or any other.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }

    /// The value of a key as a count; `None` if there is no such key.
    ///
    /// # Errors
    /// When its value is no number.
    pub fn count(&self, key: &str) -> Result<Option<u64>, Error> {
        number(&self.table, &self.facts, key)
    }

    /// The names of the tables that the merge left out.
    pub fn left_out_tables(&self) -> impl Iterator<Item = &str> {
        let names = self.get(info_keys::LEFT_OUT_TABLES).unwrap_or_default();
        names.split(',').map(str::trim).filter(|name| !name.is_empty())
    }

    /// All facts, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Ticks per second of the main clock; `None` if it is not known.
    pub fn tick_hz(&self) -> Option<Hertz> {
        self.tick_hz
    }

    /// Tick of the first event; `None` when there is no event.
    pub fn first_tick(&self) -> Option<Ticks> {
        self.first_tick
    }

    /// Tick of the last event; `None` when there is no event.
    pub fn last_tick(&self) -> Option<Ticks> {
        self.last_tick
    }
}

fn check_version(table: &Path, facts: &BTreeMap<String, String>) -> Result<(), Error> {
    let found = match facts.get(info_keys::SCHEMA_VERSION) {
        Some(version) if *version == SCHEMA_VERSION.to_string() => return Ok(()),
        Some(version) => format!("schema version {version}"),
        None => "no schema version".to_string(),
    };
    let message = format!(
        "{found}, but this program reads {SCHEMA_VERSION}: merge the recording again (sigmund merge)"
    );
    Err(Error::at(ErrorKind::SchemaVersion, table, message))
}

fn number<T: FromStr>(table: &Path, facts: &BTreeMap<String, String>, key: &str) -> Result<Option<T>, Error> {
    let Some(text) = facts.get(key) else { return Ok(None) };
    let number = text.parse().map_err(|_| {
        Error::at(ErrorKind::Schema, table, format!("{key}: expected a number, found `{text}`"))
    })?;
    Ok(Some(number))
}
