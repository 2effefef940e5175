//! A run directory as inputs. Its files are opened by their names in it, and must be regular files: a manifest that
//! names anything else is refused. If the recorder of a run was killed, the run is finished first. A run without a
//! manifest is read as it is.

use std::path::Path;

use sigmund_files::Folder;
use sigmund_model::{Level, Loss, LossKind, Ticks, sum_of_counts, tables::info_keys};

use super::{Inputs, OpenedInput, Recorded, cut::cut, namespace, open_file, parts::Parts};
use crate::{
    error::Error,
    merge::MergeOptions,
    run::{self, KernelSide, LwpCpuTime, MANIFEST, Manifest, ProcessLwps, RecordedSchema, UserSide},
};

/// The folder, if a path is a run directory.
pub(super) fn find(path: &Path) -> Result<Option<Folder>, Error> {
    if !path.is_dir() {
        return Ok(None);
    }
    let run = Folder::open(path).map_err(Error::io(path))?;
    let is_run = run.has(MANIFEST) || run::is_unfinished(&run, None) || !sides(&run)?.is_empty();
    Ok(is_run.then_some(run))
}

/// Opens the files of the run, except those that are already inputs.
pub(super) fn open(
    path: &Path,
    run: &Folder,
    inputs: &mut Inputs,
    options: &MergeOptions,
) -> Result<Vec<OpenedInput>, Error> {
    let manifest = if run.has(MANIFEST) { Some(Manifest::read_in(run)?) } else { None };
    if run::is_unfinished(run, manifest.as_ref()) {
        let (manifest, finished) = run::finish(path, manifest, options.owner)?;
        let mut sources = open_sides(path, run, &manifest, inputs, options)?;
        sources.iter_mut().last().into_iter().for_each(|about| about.finished = Some(finished.clone()));
        return Ok(sources);
    }
    match manifest {
        Some(manifest) => open_sides(path, run, &manifest, inputs, options),
        None => open_without_manifest(run, inputs, options),
    }
}

fn open_sides(
    path: &Path,
    run: &Folder,
    manifest: &Manifest,
    inputs: &mut Inputs,
    options: &MergeOptions,
) -> Result<Vec<OpenedInput>, Error> {
    let KernelSide { file, means, .. } = &manifest.kernel_side;
    // `--user-only` of a program that records nothing has neither side, as requested.
    if file.is_none() && manifest.user_side.is_empty() && means != "none" {
        let expected = "a kernel side (kernel.dat or kernel.perf) or a user side (user-PID.fut)";
        return Err(Error::bad(path, MANIFEST, expected, "neither"));
    }
    let mut sources = Vec::new();
    let left_out_before = inputs.count_left_out();
    let mut about = about_run(path, manifest);
    let parts = manifest.rotation.as_ref().map(|rotation| Parts::open(path, run, rotation)).transpose()?;
    if let Some(parts) = &parts {
        parts.describe(&mut about);
    }
    if let Some(file) = &manifest.kernel_side.file {
        let mut kernel = match &parts {
            Some(parts) => parts.kernel_side(inputs, options).into_iter().collect(),
            None => open_side(run, file, inputs, options)?,
        };
        for source in &mut kernel {
            source.cpus_lost = manifest.kernel_side.lost.clone();
            source.others_unseen = manifest.kernel_side.others_unseen;
            source.stopped = manifest.kernel_side.stopped_tick.map(Ticks);
            if manifest.kernel_side.cut {
                let detail = format!(
                    "{}: {file}: the recorder was killed, or had no room on the disk",
                    path.display()
                );
                let streams = std::mem::take(&mut source.streams);
                source.streams = streams.into_iter().map(|stream| cut(stream, &detail)).collect();
            }
        }
        sources.append(&mut kernel);
    } else {
        about.losses.push(no_kernel_side(path, &manifest.kernel_side));
    }
    about.losses.extend(unrecorded(path, manifest));
    for side in &manifest.user_side {
        let opened = match parts.as_ref().filter(|_| !side.parts.is_empty()) {
            Some(parts) => parts.user_side(side, inputs)?.into_iter().collect(),
            None => open_side(run, &side.file, inputs, options)?,
        };
        for mut user in opened {
            user.losses.extend(without_ring(path, side, &user));
            user.losses.extend(unwritten(path, side));
            user.losses.extend(cut_at_the_end(path, side, &user.carriers));
            if manifest.kernel_side.has_other_numbers {
                namespace::renumber(path, &mut user, None, inputs);
            } else if side.namespace.is_some() {
                namespace::renumber(path, &mut user, side.namespace.as_ref(), inputs);
            }
            sources.push(user);
        }
    }
    // If the run was already given, it has already been described.
    if sources.is_empty() && inputs.count_left_out() > left_out_before {
        return Ok(sources);
    }
    // If no source has the TSC, the main clock is that of the first source. So the source that only describes the run
    // comes last.
    sources.push(about);
    Ok(sources)
}

/// Opens a file of the run.
fn open_side(
    run: &Folder,
    name: &str,
    inputs: &mut Inputs,
    options: &MergeOptions,
) -> Result<Vec<OpenedInput>, Error> {
    let path = run.path_of(name);
    let file = run.open_file(name).map_err(Error::io(&path))?;
    open_file(&path, file, inputs, options)
}

/// What the manifest contains in addition to the events.
fn about_run(run: &Path, manifest: &Manifest) -> OpenedInput {
    let mut about = OpenedInput::new(run);
    about.snapshots = manifest.snapshots.iter().filter_map(|s| s.snapshot()).collect();
    about.processes = manifest.processes.iter().flat_map(ProcessLwps::pairs).collect();
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
        (info_keys::MISSING_TRACEPOINTS, manifest.missing_tracepoints.join(",")),
    ];
    about.facts = facts.into_iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k.into(), v)).collect();
    let schema = |RecordedSchema { name, text }: &RecordedSchema| {
        (format!("{}{name}", info_keys::RECORDED_SCHEMA), text.clone())
    };
    about.facts.extend(manifest.schemata.iter().map(schema));
    // Their numbers are those of the recorder, too.
    if !manifest.kernel_side.has_other_numbers {
        about.facts.extend(manifest.lwp_cpu_times.iter().filter_map(lwp_cpu_time));
    }
    about
}

/// The increase of the kernel's sum of an LWP's time on CPUs, between two readings. An LWP that did not exist at the
/// first had none.
fn lwp_cpu_time(time: &LwpCpuTime) -> Option<(String, String)> {
    let end = time.end.as_ref()?;
    let (from, before_ns) = time.begin.as_ref().map_or((0, 0), |begin| (begin.before, begin.ns));
    let ns = end.ns.checked_sub(before_ns)?;
    Some((format!("{}{}", info_keys::LWP_CPU_TIME, time.tid), format!("{from} {} {ns}", end.after)))
}

fn recorder_share(manifest: &Manifest) -> String {
    match manifest.recorder_ns.max(manifest.recorded_ns) {
        0 => String::new(),
        all => format!("{:.1} % of one CPU", 100.0 * manifest.recorder_cpu_ns as f64 / all as f64),
    }
}

fn no_kernel_side(run: &Path, side: &KernelSide) -> Loss {
    let why = side.why.as_deref().unwrap_or("nobody says why");
    let detail = format!("{}: the kernel side was not recorded: {why}", run.display());
    let advice = "record as root to know when threads really executed";
    Loss { advice, ..Loss::new(LossKind::NotRecorded, Level::Kern, detail) }
}

fn unrecorded(run: &Path, manifest: &Manifest) -> Option<Loss> {
    let count = Some(manifest.unrecorded_processes).filter(|processes| *processes > 0)?;
    let why = manifest.unrecorded_why.as_deref().unwrap_or("for an unknown reason");
    let detail = format!("{}: processes that the recorder had no arena for: {why}", run.display());
    let advice = "raise the limit of open files (ulimit -n) of the recorder";
    Some(Loss { count: Some(count), advice, ..Loss::new(LossKind::NotRecorded, Level::User, detail) })
}

/// Records of threads without a ring, in a run whose user trace does not contain their number.
fn without_ring(run: &Path, side: &UserSide, user: &OpenedInput) -> Option<Loss> {
    let in_trace = user.lost.iter().map(|(_, lost)| *lost).chain([user.lost_without_ring]);
    let count = side.lost.checked_sub(sum_of_counts(in_trace)).filter(|rest| *rest > 0)?;
    let why = if side.no_memory {
        "no memory for the buffer of an LWP"
    } else {
        "threads without a buffer: more threads at one time than buffers, or records of a signal handler while its \
         thread was given one, or of a thread that was ending"
    };
    let detail = format!("{}: {}: {why}", run.display(), side.file);
    Some(Loss { count: Some(count), ..Loss::new(LossKind::Dropped, Level::User, detail) })
}

/// Records that the recorder got but could not write.
fn unwritten(run: &Path, side: &UserSide) -> Option<Loss> {
    let detail = format!("{}: {}: the file could not be written to its end", run.display(), side.file);
    let advice = "record to a disk with more room, or with --flight";
    let loss = Loss { advice, ..Loss::new(LossKind::Dropped, Level::User, detail) };
    (side.unwritten > 0).then_some(Loss { count: Some(side.unwritten), ..loss })
}

/// The process was still running when the recording ended. What it recorded afterwards was not counted.
fn cut_at_the_end(run: &Path, side: &UserSide, carriers: &[Recorded]) -> Option<Loss> {
    let UserSide { file, pid, .. } = side;
    let detail = format!(
        "{}: {file}: process {pid} lived on when the recording ended; its later events are missing",
        run.display()
    );
    let from = carriers.iter().map(|recorded| recorded.last).max();
    let advice = "record with --follow all to wait for descendants";
    side.cut.then_some(Loss { from, advice, ..Loss::new(LossKind::NotRecorded, Level::User, detail) })
}

fn open_without_manifest(
    run: &Folder,
    inputs: &mut Inputs,
    options: &MergeOptions,
) -> Result<Vec<OpenedInput>, Error> {
    let names = sides(run)?;
    let mut sources = Vec::new();
    for name in &names {
        let opened = open_side(run, name, inputs, options)?;
        sources.append(&mut namespace::renumber_marked(&run.path_of(name), opened, inputs));
    }
    let has_events = sources.iter().any(|source| !source.streams.is_empty());
    if has_events && names.iter().all(|name| name.ends_with(".fut")) {
        let detail = format!("{}: no {MANIFEST}, and no kernel side", run.path().display());
        let mut about = OpenedInput::new(run.path());
        about.losses.push(Loss::new(LossKind::NotRecorded, Level::Kern, detail));
        sources.push(about);
    }
    Ok(sources)
}

/// The files that a recorder may have left in a folder, by their names.
fn sides(run: &Folder) -> Result<Vec<String>, Error> {
    let names = run.names().map_err(Error::io(run.path()))?;
    let is_side = |name: &String| {
        Path::new(name).extension().is_some_and(|e| e == "fut" || e == "dat" || e == "perf")
            && !run.has_folder(name)
    };
    Ok(names.into_iter().filter_map(|name| name.into_string().ok()).filter(is_side).collect())
}
