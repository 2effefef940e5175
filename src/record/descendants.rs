//! Descendants of the recorded program that outlive it: daemons, and background processes of a shell.
//!
//! A descendant is a process whose environment contains the recorder's folder, which no other process knows. So it is
//! found even if its parent is another process now, and it does not notice the search. (A recorder that adopts orphans,
//! with `PR_SET_CHILD_SUBREAPER`, would change the `getppid` of each daemon.) A program that overwrites its environment
//! is known as long as it records, because it has an arena.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::{cli::Follow, output};

/// When the program has ended: how long a descendant may take until it begins to record. It may have been started just
/// before.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);
/// How long the first search may take. Reading the environment of a process may never end, because it is in the memory
/// of that process.
const FOUND_WITHIN: Duration = Duration::from_secs(2);
/// The minimum time between two searches. Also, a search may take at most one in `SHARE` parts of the time until the
/// next.
const SEARCH_EVERY: Duration = Duration::from_millis(10);
const SHARE: u32 = 20;
/// The maximum number of descendants named in a message.
const NAMED: usize = 5;

/// The descendants that are alive after the program has ended.
pub(super) struct Descendants {
    follow: Option<Follow>,
    found: Receiver<Vec<String>>,
    /// The result of the last search.
    living: Option<Vec<String>>,
    since: Instant,
}

impl Descendants {
    /// Starts the search on a separate thread. `folder` is the folder that the program was given.
    pub(super) fn search(folder: &Path, follow: Option<Follow>) -> Result<Descendants> {
        let mut variable = format!("{}=", fut::ENV_ARENA_DIR).into_bytes();
        variable.extend(folder.as_os_str().as_bytes());
        let (tell, found) = channel();
        let body = move || {
            loop {
                let begun = Instant::now();
                if tell.send(living(&variable)).is_err() {
                    return;
                }
                thread::sleep(SEARCH_EVERY.max(begun.elapsed() * SHARE));
            }
        };
        thread::Builder::new().name("descendants".into()).spawn(body).context("a thread for descendants")?;
        Ok(Descendants { follow, found, living: None, since: Instant::now() })
    }

    /// Whether the recording has to continue for descendants. `recording` is the number of processes that have an
    /// arena. Waits up to `time` for the result of a search.
    pub(super) fn are_waited_for(&mut self, recording: u64, time: Duration) -> bool {
        self.learn(time);
        let waited = self.since.elapsed();
        let Some(living) = &self.living else { return waited < FOUND_WITHIN };
        match self.follow {
            Some(Follow::First) => false,
            Some(Follow::All) => recording > 0 || !living.is_empty(),
            None => recording > 0 || !living.is_empty() && waited < BEGINS_WITHIN,
        }
    }

    /// Takes the result of the last search. Waits up to `time` for one.
    fn learn(&mut self, time: Duration) {
        match self.found.recv_timeout(time) {
            Ok(living) => self.living = Some(self.found.try_iter().last().unwrap_or(living)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.living = Some(Vec::new()),
        }
    }

    /// The number of living descendants, with their names; `None` if there are none. Waits for the first search, in
    /// case that a signal came before it was done.
    pub(super) fn describe(&mut self) -> Option<String> {
        if self.living.is_none() {
            self.learn(FOUND_WITHIN.saturating_sub(self.since.elapsed()));
        }
        let living = self.living.as_deref().filter(|living| !living.is_empty())?;
        let more = if living.len() > NAMED { ", …" } else { "" };
        let named = living.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        Some(format!("{} ({named}{more})", output::counted(living.len() as u64, "descendant")))
    }
}

/// The number and name of each process that has this variable in its environment. Processes that have ended have no
/// environment.
fn living(variable: &[u8]) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|found| found == variable)
    };
    let name = |pid: u32| {
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{pid} {}", String::from_utf8_lossy(name.trim_ascii_end()))
    };
    numbers.filter(is_one).map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A process that is given this folder, and has begun.
    fn given(folder: &Path) -> Child {
        let mut child = Command::new("sleep").arg("100").env(fut::ENV_ARENA_DIR, folder).spawn().unwrap();
        let pid = child.id();
        let of_child = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        // While it is executed it has its name already, and no environment yet.
        let has_begun = || of_child("comm") == b"sleep\n" && !of_child("environ").is_empty();
        let begun = Instant::now();
        while !has_begun() {
            assert!(child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(20));
        }
        child
    }

    #[test]
    fn descendants_with_the_folder_in_their_environment_are_found_until_they_exit() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = given(folder.path());
        let mut other = given(&folder.path().join("of-another-recorder"));
        let mut all = Descendants::search(folder.path(), Some(Follow::All)).unwrap();
        let mut first = Descendants::search(folder.path(), Some(Follow::First)).unwrap();
        let mut those_that_record = Descendants::search(folder.path(), None).unwrap();
        // Although nothing has waited for the first search.
        assert_eq!(first.describe(), Some(format!("1 descendant ({} sleep)", child.id())));
        assert!(!first.are_waited_for(1, Duration::ZERO));
        // One that records is waited for however long it takes, one that does not only in case that it will.
        assert!(those_that_record.are_waited_for(1, FOUND_WITHIN));
        while those_that_record.are_waited_for(0, SEARCH_EVERY) {}
        assert!(those_that_record.are_waited_for(1, FOUND_WITHIN));
        assert!(all.are_waited_for(0, FOUND_WITHIN));
        child.kill().unwrap();
        // It has ended, although it has not been waited for.
        while all.are_waited_for(0, FOUND_WITHIN) {}
        assert_eq!(all.describe(), None);
        child.wait().unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
