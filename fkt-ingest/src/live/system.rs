//! The description of the machine in a trace.dat: page layout, declarations, names of LWPs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tracefs::read;
use crate::error::Error;

/// The texts, as the kernel writes them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct System {
    #[serde(skip)]
    tracefs: PathBuf,
    pub(super) header_page: String,
    pub(super) header_event: String,
    /// Declarations of ftrace's own records.
    pub(super) ftrace_events: Vec<String>,
    /// Declarations of the recorded events, by system.
    pub(super) events: BTreeMap<String, Vec<String>>,
    pub(super) printk_formats: String,
    pub(super) uname: String,
    /// `comm` by LWP.
    names: BTreeMap<u32, String>,
}

impl System {
    /// Reads everything except the final names. `events` are `system:event`, and may contain duplicates.
    pub(super) fn read<'a>(
        tracefs: &Path,
        events: impl Iterator<Item = &'a String>,
    ) -> Result<System, Error> {
        let folder = tracefs.join("events");
        let mut system = System {
            tracefs: tracefs.to_owned(),
            header_page: read(&folder.join("header_page"))?,
            header_event: read(&folder.join("header_event"))?,
            printk_formats: read(&tracefs.join("printk_formats")).unwrap_or_default(),
            uname: uname(),
            names: names_in_proc(),
            ..System::default()
        };
        let ftrace = folder.join("ftrace");
        let entries = fs::read_dir(&ftrace).map_err(|e| Error::io(&ftrace, e))?;
        let mut formats: Vec<PathBuf> = entries.flatten().map(|e| e.path().join("format")).collect();
        formats.sort();
        // Some have no declaration; no reader needs their records.
        system.ftrace_events = formats.iter().filter_map(|path| read(path).ok()).collect();

        let mut seen = Vec::new();
        for event in events.filter_map(|e| e.split_once(':')) {
            if !seen.contains(&event) {
                seen.push(event);
                let format = read(&folder.join(event.0).join(event.1).join("format"))?;
                system.events.entry(event.0.to_owned()).or_default().push(format);
            }
        }
        Ok(system)
    }

    /// Reads the names at the end: of living LWPs from /proc, of others those that the kernel saved.
    pub(super) fn read_names(&mut self) {
        let saved = read(&self.tracefs.join("saved_cmdlines")).unwrap_or_default();
        let saved = saved.lines().filter_map(|line| {
            let (pid, comm) = line.trim_start().split_once(' ')?;
            Some((pid.parse().ok()?, comm.to_owned()))
        });
        self.names.extend(saved.filter(|(_, comm)| comm != "<...>"));
        self.names.extend(names_in_proc());
    }

    /// Replaces all names by those of the living LWPs.
    pub(super) fn read_names_again(&mut self) {
        self.names = names_in_proc();
    }

    /// In the format of `saved_cmdlines`: lines `pid comm`.
    pub(super) fn cmdlines(&self) -> String {
        self.names.iter().map(|(pid, comm)| format!("{pid} {comm}\n")).collect()
    }
}

/// `comm` of every living LWP. LWPs that exit during the scan are missed.
fn names_in_proc() -> BTreeMap<u32, String> {
    let tasks = numbered("/proc".as_ref()).into_iter().flat_map(|(_, path)| numbered(&path.join("task")));
    tasks
        .filter_map(|(tid, path)| {
            let comm = fs::read(path.join("comm")).ok()?;
            Some((tid, String::from_utf8_lossy(&comm).trim_end_matches('\n').replace('\n', " ")))
        })
        .collect()
}

fn numbered(folder: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path()))).collect()
}

/// `Linux host 6.18.0 x86_64`, in trace-cmd's format.
fn uname() -> String {
    let kernel = |name: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
        text.map(|t| t.trim().to_owned()).unwrap_or_default()
    };
    let (os, host, release) = (kernel("ostype"), kernel("hostname"), kernel("osrelease"));
    format!("{os} {host} {release} {}", std::env::consts::ARCH)
}
