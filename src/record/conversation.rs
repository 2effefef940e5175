//! Gets what a process has recorded itself: when the recording ends, the process is asked for the last events of its
//! flight recorder. It has a single deadline for everything, and a recorder that is stopping does not wait for it.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use fut::control::Process;
use sigmund_files::Folder;
use sigmund_merge::UserSide;
use sigmund_model::Pid;

use super::{namespace, work::Work};
use crate::output;

/// The time limit, from the request to the end of the answer.
const WITHIN: Duration = Duration::from_secs(10);

/// A pending request to a process.
pub(super) struct Conversation {
    work: Work<Result<UserSide>>,
    run: Arc<Folder>,
    file: String,
    pid: Pid,
    /// It also applies to the search for the socket, which reads the memory of the process (`/proc/PID/environ`).
    deadline: Instant,
    /// Set when the answer is no longer waited for.
    is_given_up: Arc<AtomicBool>,
}

impl Conversation {
    /// Asks the process to write its user trace into the run.
    pub(super) fn begin(pid: Pid, run: &Arc<Folder>) -> Result<Conversation> {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            bail!("process {pid} has ended");
        }
        if is_stopped(pid) {
            bail!("process {pid} is stopped and cannot answer");
        }
        let file = format!("user-{pid}.fut");
        let is_given_up = Arc::new(AtomicBool::new(false));
        let (theirs, name, given_up) = (Arc::clone(run), file.clone(), Arc::clone(&is_given_up));
        let work = Work::start("conversation", move || snapshot(pid, name, &theirs, &given_up))?;
        let deadline = Instant::now() + WITHIN + WITHIN / 10;
        Ok(Conversation { work, run: Arc::clone(run), file, pid, deadline, is_given_up })
    }

    /// The answer of the process, if it has arrived. `Some(None)` if there will be no answer.
    pub(super) fn within(&self, time: Duration) -> Option<Option<UserSide>> {
        match self.work.within(time) {
            Ok(Some(Ok(side))) => Some(Some(side)),
            Ok(None) if Instant::now() < self.deadline => None,
            Ok(None) => {
                self.drop_answer("it does not answer");
                Some(None)
            }
            Ok(Some(Err(error))) | Err(error) => {
                // The file is empty, if it exists at all.
                let _ = self.run.remove_file(&self.file);
                output::notice(&format!("no events of the process itself: {}", output::reasons(&error)));
                Some(None)
            }
        }
    }

    /// Stops waiting for the answer.
    pub(super) fn give_up(self) {
        self.drop_answer("the recorder no longer waits for its answer");
    }

    fn drop_answer(&self, why: &str) {
        // Relaxed: it publishes no other memory.
        self.is_given_up.store(true, Ordering::Relaxed);
        let _ = self.run.remove_file(&self.file);
        output::notice(&format!("no events of the process itself: process {}: {why}", self.pid));
    }
}

fn snapshot(pid: Pid, file: String, run: &Folder, is_given_up: &AtomicBool) -> Result<UserSide> {
    let process = Process::find(pid.0)?;
    let namespace = namespace::numbers_of(pid);
    let is_given_up = || is_given_up.load(Ordering::Relaxed);
    let reply = process.snapshot_within(&run.create_file(&file)?, WITHIN, &is_given_up)?;
    let number = |fact| reply.number(fact).unwrap_or(0);
    let (lost, unfinished) = (number("lost"), number("unfinished"));
    Ok(UserSide { file, pid: pid.0, lost, unfinished, namespace, ..UserSide::default() })
}

/// Whether the process is stopped, so that none of its LWPs runs. Its name may contain any characters, so the text is
/// parsed from the end of the name.
fn is_stopped(pid: Pid) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplitn(2, |byte| *byte == b')').next().unwrap_or_default();
    matches!(after_name.trim_ascii_start().first(), Some(b'T' | b't'))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid as KernelPid, Signal, kill_process};

    use super::*;

    #[test]
    fn a_process_that_is_stopped_is_not_asked() {
        let mut sleep = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = Pid(sleep.id());
        assert!(!is_stopped(pid));
        kill_process(KernelPid::from_child(&sleep), Signal::STOP).unwrap();
        let started = Instant::now();
        while !is_stopped(pid) {
            assert!(started.elapsed() < Duration::from_secs(20));
        }
        let folder = tempfile::tempdir().unwrap();
        let run = Arc::new(Folder::create_or_take_empty(folder.path(), None).unwrap());
        assert!(Conversation::begin(pid, &run).is_err());
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
}
