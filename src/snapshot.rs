//! `sigmund snapshot`: writes the last events of a flight recorder to a user trace. The file is opened here, and its
//! descriptor is passed to the program. So the program needs no write access there, and the file belongs to the caller.

use std::{ffi::OsString, fs::File, io::ErrorKind, sync::atomic::Ordering, time::Duration};

use anyhow::{Context, Result};
use fut::control::{Process, Reply};
use sigmund_files::Folder;

use crate::{Found, cli::SnapshotArgs, output, owner::owner, signals, terminal};

/// The time limit for a process to write the snapshot.
const WITHIN: Duration = Duration::from_secs(300);

pub(crate) fn run(args: &SnapshotArgs) -> Result<Found> {
    // Done before the file is created, so that no file is left if there is no such process.
    let process = Process::find(args.pid)?;
    // An incomplete file must not remain either. So a signal ends only the wait, not this process.
    let (stop, _) = signals::stop_at_signals()?;
    let (folder, name, file) = create(args)?;
    let path = folder.path_of(&name);
    let reply = match process.snapshot_within(&file, WITHIN, &|| stop.load(Ordering::Relaxed)) {
        Ok(reply) => reply,
        Err(error) => {
            // Nothing but the file that this process has just created.
            let _ = folder.remove_file(&name);
            return Err(error.into());
        }
    };
    terminal::line(path.display())?;
    output::notice(&summary(args.pid, &reply));
    Ok(if reply.number("records") == Some(0) { Found::Nothing } else { Found::Something })
}

/// The requested file; without one, the first free name of `snapshot-PID.fut`, `snapshot-PID-2.fut`, ….
fn create(args: &SnapshotArgs) -> Result<(Folder, OsString, File)> {
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = args.output.clone().unwrap_or_else(|| format!("snapshot-{}{suffix}.fut", args.pid).into());
        let (folder, name) = Folder::parent_of(&path, owner()).with_context(|| path.display().to_string())?;
        match folder.create_file(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && args.output.is_none() => number += 1,
            made => {
                let file = made.with_context(|| path.display().to_string())?;
                return Ok((folder, name, file));
            }
        }
    }
}

fn summary(pid: u32, reply: &Reply) -> String {
    let number = |fact| reply.number(fact).unwrap_or(0);
    let mut text = format!(
        "process {pid}: {} in {}, {:.1} MB",
        output::counted(number("records"), "event"),
        output::counted(number("packets"), "packet"),
        number("bytes") as f64 / 1e6
    );
    if number("overwritten_bytes") > 0 {
        text += &format!("; {:.1} MB before them are overwritten", number("overwritten_bytes") as f64 / 1e6);
    }
    if number("lost") > 0 {
        text += &format!("; {} lost", output::counted(number("lost"), "event"));
    }
    text
}
