//! Reads an archive with `otf2-print` and Python's `otf2.reader`.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

use crate::tools::{self, PYTHON};

/// Enters, leaves, and ticks between them, of a region at the location with this number.
pub(crate) type RegionSums = BTreeMap<(u64, String), [u64; 3]>;

/// The output of Python's reader.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) events: Vec<String>,
    pub(crate) regions: RegionSums,
    /// Number of values, and the last value, by location.
    pub(crate) metrics: BTreeMap<u64, [u64; 2]>,
    /// Number of acquisitions and releases of locks, by location.
    pub(crate) locks: BTreeMap<u64, [u64; 2]>,
    /// Name, group and type, by number.
    pub(crate) locations: BTreeMap<u64, [String; 3]>,
    /// Name, type, number of members.
    pub(crate) groups: Vec<String>,
    pub(crate) clock: String,
    pub(crate) count: Vec<String>,
}

/// Whether the readers are installed; prints that the test is skipped if not.
pub(crate) fn can_read() -> bool {
    tools::all_there(&["otf2-print"]) && tools::python_has("otf2")
}

/// Reads an archive with both readers, which must not report errors. `events`: whether Python's reader prints each
/// event.
pub(crate) fn read(folder: &Path, events: bool) -> Read {
    let anchor = folder.join("traces.otf2");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/otf2/read.py");
    let mut python = Command::new(PYTHON);
    python.arg(script).arg(&anchor).args(events.then_some("events"));
    let read = parse(&tools::quiet_output(&mut python));
    print(&anchor, &read);
    read
}

/// Checks the output of `otf2-print`, which exits with 0 even after errors.
fn print(anchor: &Path, read: &Read) {
    let definitions = tools::quiet_output(Command::new("otf2-print").arg("-G").arg(anchor));
    assert!(!definitions.contains("INVALID") && !definitions.contains("UNKNOWN TYPE"), "{definitions}");
    let events = tools::quiet_output(Command::new("otf2-print").arg(anchor).stdin(Stdio::null()));
    assert!(!events.contains("INVALID"), "{events}");
    let count = |word: &str| events.lines().filter(|line| line.starts_with(word)).count() as u64;
    let sum = |index: usize| read.regions.values().map(|sums| sums[index]).sum::<u64>();
    assert_eq!((count("ENTER "), count("LEAVE ")), (sum(0), sum(1)));
    let locks = |index: usize| read.locks.values().map(|locks| locks[index]).sum::<u64>();
    assert_eq!((count("THREAD_ACQUIRE_LOCK "), count("THREAD_RELEASE_LOCK ")), (locks(0), locks(1)));
    assert_eq!(count("METRIC "), read.metrics.values().map(|metric| metric[0]).sum::<u64>());
}

fn parse(output: &str) -> Read {
    let mut read = Read::default();
    for line in output.lines() {
        let (kind, rest) = line.split_once('\t').unwrap();
        let words: Vec<&str> = rest.split('\t').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match kind {
            "event" => read.events.push(rest.replace('\t', " | ")),
            "region" => {
                let sums = [number(2), number(3), number(4)];
                assert_eq!(read.regions.insert((number(0), words[1].into()), sums), None);
            }
            "metric" => assert_eq!(read.metrics.insert(number(0), [number(2), number(3)]), None),
            "lock" => assert_eq!(read.locks.insert(number(0), [number(1), number(2)]), None),
            "location" => {
                let said = [words[1].into(), words[2].into(), words[3].into()];
                assert_eq!(read.locations.insert(number(0), said), None);
            }
            "group" => read.groups.push(rest.replace('\t', " | ")),
            "clock" => read.clock = rest.replace('\t', " "),
            "count" => read.count = words.iter().map(ToString::to_string).collect(),
            _ => panic!("{line}"),
        }
    }
    read
}
