//! The parts of a recording that was cut while it ran. Its oldest parts may have been removed.
//!
//! ```text
//! RUN/part-00007.json            the content of this file: when the part begins, and its files once it is closed
//! RUN/kernel.part-00007.dat      the kernel side, a trace.dat; until that is written, the files from which it is made
//! RUN/user-PID.part-00007.fut    the user side
//! RUN/user-PID.part-00007.carried
//!                                the facts from removed parts about user threads that live; next to the first part
//! ```
//!
//! A part contains what was recorded from the tick at which it begins, as far as it is not in later parts.

use std::io::{self, Read};

use fkt_ingest::live::part_name;
use serde::{Deserialize, Serialize};
use sigmund_files::Folder;

use super::ProcessLwps;
use crate::error::Error;

const NAME: &str = "part-";
/// Maximum length of the description of a part. Each LWP that lives takes 20 bytes in it.
const MAX_PART: u64 = 256 << 20;

/// How a recording was cut into parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Identifies the recording. All its parts have the same value.
    pub recording: String,
    /// TSC at its start.
    pub began: u64,
    /// Maximum number of bytes of the recording, if limited.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Minimum time to be kept, in nanoseconds, if limited.
    #[serde(default)]
    pub max_ns: Option<u64>,
    /// The first part that was kept.
    pub first: u32,
    /// The last part.
    pub last: u32,
    /// What was removed.
    #[serde(default)]
    pub removed: Removed,
    /// The result of compressing the kernel side with zstd while it was recorded.
    #[serde(default)]
    pub packed: Packed,
}

/// What parts contained that were removed because the recording is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Number of removed parts.
    pub parts: u32,
    /// Their size on the disk, in bytes.
    pub bytes: u64,
    /// Number of events of the kernel in them.
    pub kernel_events: u64,
    /// Number of events of programs in them.
    pub user_events: u64,
}

/// Parts of the kernel side that were compressed while the recording continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Number of such parts.
    pub parts: u32,
    /// Bytes of pages in them.
    pub page_bytes: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// CPU time that compressing took.
    pub cpu_ns: u64,
}

/// The contents of the file that describes a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Identifies the recording.
    pub recording: String,
    /// Number of the part, from 1.
    pub number: u32,
    /// TSC from which on everything is in this part or in later ones; 0 while that is unknown.
    pub begins: u64,
    /// The LWPs that lived at that time, by process.
    #[serde(default)]
    pub processes: Vec<ProcessLwps>,
    /// What had been removed when this part began.
    #[serde(default)]
    pub removed: Removed,
    /// The files of the part; none while it is being recorded.
    #[serde(default)]
    pub files: Vec<PartFile>,
}

/// A file of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Whether it was not made yet. Then `bytes` is the length of the pages of which it is to be made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_be_made: bool,
    /// Number of events in it.
    pub events: u64,
    /// Number of events that were lost while it was written. Only for the user side.
    #[serde(default)]
    pub lost: u64,
}

impl Part {
    /// Name of the file that describes a part.
    pub fn name(number: u32) -> String {
        format!("{NAME}{number:05}.json")
    }

    /// Notes the length of the part's trace.dat, which is not that of the pages it is made of.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn note_kernel_length(&mut self, run: &Folder) -> io::Result<()> {
        let name = part_name(self.number);
        if let Some(file) = self.files.iter_mut().find(|file| file.name == name) {
            file.bytes = run.open_file(&name)?.metadata()?.len();
            file.to_be_made = false;
        }
        Ok(())
    }

    /// Writes the description. An earlier one is replaced.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, run: &Folder) -> Result<(), Error> {
        let name = Part::name(self.number);
        let json = serde_json::to_vec(self).map_err(std::io::Error::from);
        json.and_then(|json| run.write_file(&name, &json)).map_err(Error::io(&run.path_of(&name)))
    }

    /// Reads the description of the part with this number.
    ///
    /// # Errors
    /// If there is none, or the file is not one.
    pub fn read(run: &Folder, number: u32) -> Result<Part, Error> {
        let name = Part::name(number);
        let path = run.path_of(&name);
        let mut json = Vec::new();
        let file = run.open_file(&name).map_err(Error::io(&path))?;
        file.take(MAX_PART).read_to_end(&mut json).map_err(Error::io(&path))?;
        let part: Part = serde_json::from_slice(&json).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            Error::bad(&path, &place, "the description of a part", error.to_string())
        })?;
        if part.number != number {
            return Err(Error::bad(&path, "number", &number.to_string(), part.number.to_string()));
        }
        Ok(part)
    }
}

/// The number of the part that a file of this name describes.
fn described(name: &str) -> Option<u32> {
    let number: u32 = name.strip_prefix(NAME)?.strip_suffix(".json")?.parse().ok()?;
    (Part::name(number) == name).then_some(number)
}

/// The parts that have a description, in the order of their numbers.
pub(super) fn all_described(run: &Folder) -> Result<Vec<u32>, Error> {
    let names = run.names().map_err(Error::io(run.path()))?;
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| described(name.to_str()?)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Whether this is the name of a description, or of a description that is being written.
pub(super) fn is_description(name: &str) -> bool {
    let whole = name.split_once(".partial-").map_or(name, |(whole, _)| whole);
    described(whole).is_some()
}

/// Name of a part of a user trace. If `user-7.fut` is the name of the whole, `user-7.part-00003.fut` is that of part 3.
pub fn user_part_name(whole: &str, part: u32) -> String {
    let stem = whole.strip_suffix(".fut").unwrap_or(whole);
    format!("{stem}.{NAME}{part:05}.fut")
}

const CARRIED: &str = ".carried";

/// Name of the file with the facts that were carried over about the user threads of a user trace, when this part began
/// and the earlier parts were removed.
pub fn user_carried_name(whole: &str, part: u32) -> String {
    let name = user_part_name(whole, part);
    format!("{}{CARRIED}", name.strip_suffix(".fut").unwrap_or(&name))
}

/// Whether [`user_carried_name`] makes this name, or it is the name of such a file that is being written.
pub(super) fn is_carried(name: &str) -> bool {
    let whole = name.split_once(".partial").map_or(name, |(whole, _)| whole);
    let stem = whole.strip_suffix(CARRIED);
    stem.is_some_and(|stem| stem.starts_with("user-") && whole_and_part(&format!("{stem}.fut")).is_some())
}

/// The name of the whole user trace, and the number of the part.
pub fn whole_and_part(name: &str) -> Option<(String, u32)> {
    let (stem, part) = name.strip_suffix(".fut")?.rsplit_once('.')?;
    let number = part.strip_prefix(NAME)?.parse().ok()?;
    let whole = format!("{stem}.fut");
    (user_part_name(&whole, number) == name).then_some((whole, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_come_back_and_others_are_none() {
        assert_eq!(user_part_name("user-7-namespace-2.fut", 3), "user-7-namespace-2.part-00003.fut");
        for (whole, part) in [("user-7.fut", 1), ("user-7-2.fut", 99_999), ("user-7.fut", 100_000)] {
            assert_eq!(whole_and_part(&user_part_name(whole, part)), Some((whole.into(), part)));
        }
        for name in ["user-7.fut", "user-7.part-3.fut", "user-7.part-00003", "user-7.part-x.fut"] {
            assert_eq!(whole_and_part(name), None, "{name}");
        }
        assert!(is_description("part-00001.json") && is_description("part-00001.json.partial-77"));
        assert!(!is_description("part-1.json") && !is_description("part-00001.txt"));
    }

    #[test]
    fn a_part_that_is_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let run = Folder::open_own(dir.path(), None).unwrap();
        assert!(all_described(&run).unwrap().is_empty());
        let part = Part { recording: "a".into(), number: 4, begins: 9, ..Part::default() };
        part.write(&run).unwrap();
        Part { number: 11, ..part.clone() }.write(&run).unwrap();
        assert_eq!(all_described(&run).unwrap(), [4, 11]);
        assert_eq!(Part::read(&run, 4).unwrap(), part);
        std::fs::copy(dir.path().join(Part::name(4)), dir.path().join(Part::name(5))).unwrap();
        std::fs::write(dir.path().join(Part::name(6)), "{").unwrap();
        for (number, words) in [
            (5, "part-00005.json: number: expected 5, found 4"),
            (6, "part-00006.json: line 1, column 1: expected the description of a part, found EOF"),
            (7, "part-00007.json: No such file"),
        ] {
            let error = Part::read(&run, number).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
