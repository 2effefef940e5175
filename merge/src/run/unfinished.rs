//! Finishes a run whose recorder was killed. What it had written becomes kernel.dat and a complete manifest.

use std::path::Path;

use fkt_ingest::live;
use fut::trace::UserTrace;
use sigmund_files::{Folder, Owner};

use super::{
    KERNEL_DAT, KERNEL_PERF, MANIFEST, Manifest, NAMESPACE_MARK, NamespaceNumbers, Part, Rotation,
    SnapshotLog, UserSide, parts,
};
use crate::error::Error;

/// Whether the recorder of a run did not finish it.
pub(crate) fn is_unfinished(run: &Folder, manifest: Option<&Manifest>) -> bool {
    live::is_unfinished(run) || manifest.is_some_and(|manifest| manifest.unfinished)
}

/// Finishes the run, and returns a sentence about that. The folder must belong to the caller, since files are written
/// to it.
pub(crate) fn finish(
    path: &Path,
    manifest: Option<Manifest>,
    owner: Option<Owner>,
) -> Result<(Manifest, String), Error> {
    let run = Folder::open_own(path, owner).map_err(|error| Error::Unfinished(path.into(), error))?;
    if !run.lock() {
        return Err(Error::StillRecording(path.into()));
    }
    let kernel = live::finish(&run, KERNEL_DAT)?;
    let parts = live::finish_parts(&run)?;
    let described = parts::all_described(&run)?;
    for number in &described {
        note_length(&run, *number, parts.iter().any(|(made, _)| made == number))?;
    }
    let finished = || kernel.iter().chain(parts.iter().map(|(_, finished)| finished));
    let bytes: u64 = finished().map(|finished| finished.summary.page_bytes()).sum();
    // Only the last part can be incomplete.
    let stopped = finished().last().map(|finished| finished.stopped);
    // A recorder that failed only to write kernel.dat has written everything else.
    let was_killed = manifest.as_ref().is_none_or(|manifest| manifest.unfinished);
    let mut manifest = manifest.unwrap_or_default();
    let rotation = find_parts(&run, manifest.rotation.take(), &described);
    let has_kernel = || described.iter().any(|part| run.has(live::part_name(*part)));
    let side = &mut manifest.kernel_side;
    if run.has(KERNEL_DAT) || rotation.is_some() && has_kernel() {
        (side.file, side.means, side.why) = (Some(KERNEL_DAT.into()), "tracefs".into(), None);
    } else if run.has(KERNEL_PERF) {
        (side.file, side.means) = (Some(KERNEL_PERF.into()), "perf".into());
    } else {
        side.file = None;
    }
    side.cut = side.file.is_some() && was_killed && stopped != Some(true);
    if stopped == Some(true) && rotation.is_none() {
        let cpus = finished().flat_map(|finished| &finished.summary.cpus);
        side.lost = cpus.map(|cpu| (cpu.cpu.0, cpu.lost)).collect();
    }
    manifest.rotation = rotation;
    if was_killed {
        manifest.ended = "recorder killed".into();
        manifest.user_side = user_sides(&run)?;
    }
    manifest.unfinished = false;
    manifest.write(&run)?;
    SnapshotLog::remove(&run)?;
    let why = if was_killed {
        "its recorder was killed, or had no room on the disk"
    } else {
        "its kernel side was not written"
    };
    let mib = bytes >> 20;
    let users = manifest.user_side.len();
    let said = format!(
        "{}: {why}: finished with {mib} MiB of kernel events and {users} user traces",
        path.display()
    );
    Ok((manifest, said))
}

/// Notes the length of a trace.dat that was made here, or that the recorder had made when it was killed before it noted that.
fn note_length(run: &Folder, number: u32, was_made_here: bool) -> Result<(), Error> {
    // Without a description, the part is reported when it is read.
    let Ok(mut part) = Part::read(run, number) else { return Ok(()) };
    let name = live::part_name(number);
    let is_unnoted = part.files.iter().any(|file| file.to_be_made && file.name == name);
    if !was_made_here && !is_unnoted {
        return Ok(());
    }
    match part.note_kernel_length(run) {
        // The recorder may not have made it. What cannot be opened is reported when the part is read.
        Err(_) if !was_made_here => Ok(()),
        noted => {
            noted.map_err(Error::io(&run.path_of(name)))?;
            part.write(run)
        }
    }
}

/// The parts that exist, if the recording was cut into parts.
fn find_parts(run: &Folder, rotation: Option<Rotation>, described: &[u32]) -> Option<Rotation> {
    let (first, last) = (*described.first()?, *described.last()?);
    let rotation = rotation?;
    // The newest part knows most about what was removed.
    let removed = Part::read(run, last).map_or(rotation.removed, |part| part.removed);
    Some(Rotation { first, last, removed, ..rotation })
}

/// The user traces in the run. Files that their recorder has created but not begun to write do not count.
fn user_sides(run: &Folder) -> Result<Vec<UserSide>, Error> {
    let names = run.names().map_err(Error::io(run.path()))?;
    let mut sides: Vec<UserSide> = Vec::new();
    let mut files: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
    files.sort_unstable();
    for name in files {
        let (file, part) = match parts::whole_and_part(name) {
            Some((whole, part)) => (whole, Some(part)),
            None => (name.to_owned(), None),
        };
        let number = file.strip_prefix("user-").and_then(|rest| rest.strip_suffix(".fut"));
        let pid = number.and_then(|number| number.split('-').next()?.parse().ok());
        let Some(pid) = pid else { continue };
        let path = run.path_of(name);
        let opened = run.open_file(name).map_err(Error::io(&path))?;
        if !UserTrace::is_user_trace(&crate::source::head(&path, &opened)?) {
            continue;
        }
        match sides.iter_mut().find(|side| part.is_some() && side.file == file) {
            Some(side) => side.parts.extend(part),
            None => {
                let namespace = file.contains(NAMESPACE_MARK).then(NamespaceNumbers::default);
                let parts = part.into_iter().collect();
                sides.push(UserSide { file, parts, pid, namespace, ..UserSide::default() });
            }
        }
    }
    Ok(sides)
}

/// Whether a recorder, finished or killed, gives files in a folder such a name.
pub fn is_of_a_run(name: &str) -> bool {
    let is_user_side = name.starts_with("user-") && name.ends_with(".fut");
    let fixed = [MANIFEST, super::snapshots::SNAPSHOTS, KERNEL_DAT, KERNEL_PERF];
    let is_partial_manifest = name.starts_with("run.json.partial-");
    is_user_side
        || parts::is_carried(name)
        || fixed.contains(&name)
        || is_partial_manifest
        || live::is_part(name)
        || parts::is_description(name)
}
