//! A run directory as inputs. One whose recorder was killed has no manifest; its files are taken as they are.

use std::{fs, path::Path};

use sigmund_model::{ClockDomain, Level, Loss, LossKind, Lwp};

use super::{Source, open_file};
use crate::{
    error::Error,
    run::{KernelSide, MANIFEST, Manifest, UserSide},
};

pub(super) fn open(run: &Path, clock: Option<ClockDomain>) -> Result<Vec<Source>, Error> {
    if !run.join(MANIFEST).exists() {
        return open_without_manifest(run, clock);
    }
    let manifest = Manifest::read(run)?;
    let mut sources = Vec::new();
    let mut about = about_run(run, &manifest);
    if let Some(file) = &manifest.kernel_side.file {
        let mut kernel = open_file(&run.join(file), clock)?;
        kernel.iter_mut().for_each(|source| source.cpus_lost = manifest.kernel_side.lost.clone());
        sources.append(&mut kernel);
    } else {
        about.losses.push(no_kernel_side(run, &manifest.kernel_side));
    }
    for side in &manifest.user_side {
        for mut user in open_file(&run.join(&side.file), None)? {
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

fn open_without_manifest(run: &Path, clock: Option<ClockDomain>) -> Result<Vec<Source>, Error> {
    let mut paths: Vec<_> = fs::read_dir(run)
        .map_err(Error::io(run))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.is_file() && path.extension().is_some_and(|e| e == "fut" || e == "dat" || e == "perf")
        })
        .collect();
    paths.sort();
    if paths.is_empty() {
        let found = "neither that nor a user trace nor a kernel trace";
        return Err(Error::bad(run, "folder", "a run (with run.json)", found));
    }
    let opened: Result<Vec<_>, _> = paths.iter().map(|path| open_file(path, clock)).collect();
    Ok(opened?.into_iter().flatten().collect())
}
