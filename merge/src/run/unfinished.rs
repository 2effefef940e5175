//! Finishes a run whose recorder was killed: what it had written becomes kernel.dat and a whole manifest.

use std::path::Path;

use fkt_ingest::live;
use fut::trace::UserTrace;
use sigmund_files::{Folder, Owner};

use super::{
    KERNEL_DAT, KERNEL_PERF, MANIFEST, Manifest, NAMESPACE_MARK, NamespaceNumbers, SnapshotLog, UserSide,
};
use crate::error::Error;

/// Whether the recorder of a run has not come to its end.
pub(crate) fn is_unfinished(run: &Folder, manifest: Option<&Manifest>) -> bool {
    live::is_unfinished(run) || manifest.is_some_and(|manifest| manifest.unfinished)
}

/// Finishes it, and returns a sentence about that. The folder must be the caller's own, since files are written there.
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
    let bytes = kernel.as_ref().map_or(0, |finished| finished.summary.page_bytes());
    // A recorder that only could not write kernel.dat has written everything else.
    let was_killed = manifest.as_ref().is_none_or(|manifest| manifest.unfinished);
    let mut manifest = manifest.unwrap_or_default();
    let side = &mut manifest.kernel_side;
    if run.has(KERNEL_DAT) {
        (side.file, side.means, side.why) = (Some(KERNEL_DAT.into()), "tracefs".into(), None);
    } else if run.has(KERNEL_PERF) {
        (side.file, side.means) = (Some(KERNEL_PERF.into()), "perf".into());
    } else {
        side.file = None;
    }
    side.cut = side.file.is_some() && was_killed && kernel.as_ref().is_none_or(|finished| !finished.stopped);
    if let Some(finished) = kernel.filter(|finished| finished.stopped) {
        side.lost = finished.summary.cpus.iter().map(|cpu| (cpu.cpu.0, cpu.lost)).collect();
    }
    if was_killed {
        manifest.ended = "recorder killed".into();
        manifest.user_side = user_sides(&run)?;
    }
    manifest.unfinished = false;
    manifest.write(&run)?;
    SnapshotLog::remove(&run)?;
    let why = if was_killed { "its recorder was killed" } else { "its kernel side was not written" };
    let mib = bytes >> 20;
    let users = manifest.user_side.len();
    let said = format!(
        "{}: {why}: finished with {mib} MiB of kernel events and {users} user traces",
        path.display()
    );
    Ok((manifest, said))
}

/// The user traces in it; files that their recorder has made and not begun are none.
fn user_sides(run: &Folder) -> Result<Vec<UserSide>, Error> {
    let names = run.names().map_err(Error::io(run.path()))?;
    let mut sides = Vec::new();
    for file in names.iter().filter_map(|name| name.to_str()) {
        let number = file.strip_prefix("user-").and_then(|rest| rest.strip_suffix(".fut"));
        let pid = number.and_then(|number| number.split('-').next()?.parse().ok());
        let Some(pid) = pid else { continue };
        let path = run.path_of(file);
        let opened = run.open_file(file).map_err(Error::io(&path))?;
        if UserTrace::is_user_trace(&crate::source::head(&path, &opened)?) {
            let namespace = file.contains(NAMESPACE_MARK).then(NamespaceNumbers::default);
            sides.push(UserSide { file: file.into(), pid, namespace, ..UserSide::default() });
        }
    }
    Ok(sides)
}

/// Whether a name in a folder is one that a recorder gives, finished or killed.
pub fn is_of_a_run(name: &str) -> bool {
    let is_user_side = name.starts_with("user-") && name.ends_with(".fut");
    let fixed = [MANIFEST, super::snapshots::SNAPSHOTS, KERNEL_DAT, KERNEL_PERF];
    let is_partial_manifest = name.starts_with("run.json.partial-");
    is_user_side || fixed.contains(&name) || is_partial_manifest || live::is_part(name)
}
