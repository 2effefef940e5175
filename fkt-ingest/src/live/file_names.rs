//! Names of a recording's files: of a recording that is one, and of each part of one that is cut into parts.
//!
//! ```text
//! kernel.dat              kernel.unfinished              kernel.pages-B-C
//! kernel.part-00007.dat   kernel.part-00007.unfinished   kernel.part-00007.pages-B-C
//! ```

use std::ffi::OsString;

const STEM: &str = "kernel";
const PART: &str = "kernel.part-";
const UNFINISHED: &str = ".unfinished";
const DAT: &str = ".dat";

/// The names of a whole recording (`None`) or of a part, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileNames(pub(super) Option<u32>);

impl FileNames {
    fn stem(self) -> String {
        self.0.map_or_else(|| STEM.into(), |part| format!("{PART}{part:05}"))
    }

    /// The description: everything in a trace.dat except the pages.
    pub(super) fn description(self) -> String {
        self.stem() + UNFINISHED
    }

    /// The beginning of the names of the files of pages.
    pub(super) fn pages(self) -> String {
        self.stem() + ".pages-"
    }

    /// The pages of a CPU of a buffer, by the buffer's place in the description.
    pub(super) fn pages_of(self, buffer: usize, cpu: u32) -> String {
        format!("{}{buffer}-{cpu}", self.pages())
    }
}

/// Name of the trace.dat of a part.
pub fn part_name(part: u32) -> String {
    FileNames(Some(part)).stem() + DAT
}

/// The number of the part to which a file of this name belongs, if it is the kernel side of a part.
pub fn part_number(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PART)?;
    let (number, kind) = rest.split_once('.')?;
    let is_known = ["dat", "unfinished", "dat.unfinished"].contains(&kind) || kind.starts_with("pages-");
    let number: u32 = number.parse().ok().filter(|_| is_known)?;
    name.starts_with(&FileNames(Some(number)).stem()).then_some(number)
}

/// The numbers of the parts that have a description, ascending: closed and not written as trace.dat, or cut off.
pub(super) fn unfinished_parts(names: &[OsString]) -> Vec<u32> {
    let number = |name: &OsString| {
        let name = name.to_str()?;
        part_number(name).filter(|part| FileNames(Some(*part)).description() == name)
    };
    let mut parts: Vec<u32> = names.iter().filter_map(number).collect();
    parts.sort_unstable();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_its_part_and_no_other_name_does() {
        let names = FileNames(Some(7));
        for name in [part_name(7), names.description(), names.pages_of(1, 30), part_name(7) + UNFINISHED] {
            assert_eq!(part_number(&name), Some(7), "{name}");
        }
        assert_eq!(part_number(&part_name(123_456)), Some(123_456));
        for name in
            ["kernel.dat", "kernel.part-7.dat", "kernel.part-00007.txt", "kernel.part-.dat", "user-1.fut"]
        {
            assert_eq!(part_number(name), None, "{name}");
        }
        let there = [part_name(3), FileNames(Some(9)).description(), names.description()];
        assert_eq!(unfinished_parts(&there.map(OsString::from)), [7, 9]);
    }
}
