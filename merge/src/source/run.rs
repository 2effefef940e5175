//! A run directory as inputs. One whose recorder was killed has no manifest; its files are taken as they are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sigmund_model::{Level, Loss, LossKind, Lwp};

use super::{Source, open_trace};
use crate::{
    error::Error,
    merge::MergeOptions,
    run::{KernelSide, MANIFEST, Manifest, UserSide},
};

/// Whether a path is a run directory.
pub(super) fn is_run(path: &Path) -> bool {
    path.join(MANIFEST).exists() || sides(path).is_ok_and(|sides| !sides.is_empty())
}

pub(super) fn open(run: &Path, options: &MergeOptions) -> Result<Vec<Source>, Error> {
    if !run.join(MANIFEST).exists() {
        return open_without_manifest(run, options);
    }
    let manifest = Manifest::read(run)?;
    let mut sources = Vec::new();
    let mut about = about_run(run, &manifest);
    if let Some(file) = &manifest.kernel_side.file {
        let mut kernel = open_trace(&run.join(file), options)?;
        for source in &mut kernel {
            source.cpus_lost = manifest.kernel_side.lost.clone();
            source.others_unseen = manifest.kernel_side.others_unseen;
        }
        sources.append(&mut kernel);
    } else {
        about.losses.push(no_kernel_side(run, &manifest.kernel_side));
    }
    for side in &manifest.user_side {
        for mut user in open_trace(&run.join(&side.file), options)? {
            user.losses.extend(without_ring(run, side, &user.lost));
            user.losses.extend(unwritten(run, side));
            sources.push(user);
        }
    }
    // The main clock is the first source's, if no source has the TSC: what only describes the run comes last.
    sources.push(about);
    Ok(sources)
}

/// What the manifest says beside the events.
fn about_run(run: &Path, manifest: &Manifest) -> Source {
    let mut about = Source::new(run);
    about.snapshots = manifest.snapshots.iter().filter_map(|s| s.snapshot()).collect();
    let facts = [
        ("command", manifest.command.join(" ")),
        ("ended", manifest.ended.clone()),
        ("host", manifest.host.clone()),
        ("kernel", manifest.kernel.clone()),
        ("cpus", manifest.cpus.to_string()),
        ("recorder", manifest.recorder.clone()),
        ("recorder_cpu", recorder_share(manifest)),
        ("kernel_side", manifest.kernel_side.means.clone()),
        ("kernel_side_why", manifest.kernel_side.why.clone().unwrap_or_default()),
    ];
    about.facts = facts.into_iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k.into(), v)).collect();
    about
}

fn recorder_share(manifest: &Manifest) -> String {
    match manifest.recorded_ns {
        0 => String::new(),
        recorded => format!("{:.1} % of one CPU", 100.0 * manifest.recorder_cpu_ns as f64 / recorded as f64),
    }
}

fn no_kernel_side(run: &Path, side: &KernelSide) -> Loss {
    let why = side.why.as_deref().unwrap_or("nobody says why");
    let detail = format!("{}: the kernel side was not recorded: {why}", run.display());
    let advice = "record as root to know when threads really executed";
    Loss { advice, ..Loss::new(LossKind::NotRecorded, Level::Kern, detail) }
}

/// Records of LWPs for which the arena had no ring: only their number is known.
fn without_ring(run: &Path, side: &UserSide, lost: &[(Lwp, u64)]) -> Option<Loss> {
    let of_lwps: u64 = lost.iter().map(|(_, lost)| lost).sum();
    let count = side.lost.checked_sub(of_lwps).filter(|rest| *rest > 0)?;
    let detail =
        format!("{}: {}: more LWPs at one time than the arena has rings for", run.display(), side.file);
    Some(Loss { count: Some(count), ..Loss::new(LossKind::Dropped, Level::User, detail) })
}

/// Records that the recorder had and could not write.
fn unwritten(run: &Path, side: &UserSide) -> Option<Loss> {
    let detail = format!("{}: {}: the file could not be written to its end", run.display(), side.file);
    let advice = "record to a disk with more room, or with --flight";
    let loss = Loss { advice, ..Loss::new(LossKind::Dropped, Level::User, detail) };
    (side.unwritten > 0).then_some(Loss { count: Some(side.unwritten), ..loss })
}

fn open_without_manifest(run: &Path, options: &MergeOptions) -> Result<Vec<Source>, Error> {
    let paths = sides(run).map_err(Error::io(run))?;
    let opened: Result<Vec<_>, _> = paths.iter().map(|path| open_trace(path, options)).collect();
    Ok(opened?.into_iter().flatten().collect())
}

/// What a recorder may have left in a folder, by its name.
fn sides(run: &Path) -> io::Result<Vec<PathBuf>> {
    let is_side = |path: &PathBuf| {
        path.is_file() && path.extension().is_some_and(|e| e == "fut" || e == "dat" || e == "perf")
    };
    let entries = fs::read_dir(run)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = entries.filter(is_side).collect();
    paths.sort();
    Ok(paths)
}
