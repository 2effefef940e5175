//! Which traces a path holds: a file of any format that `merge` takes, or a run.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use fkt_ingest::{ErrorKind, Listing, TraceFile, TraceStream};
use fut::trace::UserTrace;
use sigmund_merge::Manifest;
use sigmund_model::ClockDomain;

use super::held::{Held, StreamHeld};

/// What is at a path.
pub(super) struct Inputs {
    pub(super) path: PathBuf,
    /// If it is a run that was ended properly: how, when and where it was recorded.
    pub(super) manifest: Option<Manifest>,
    pub(super) is_run: bool,
    /// Each trace with its streams, which are not read yet.
    pub(super) traces: Vec<(Held, Vec<TraceStream>)>,
}

/// Opens what is at `path`; `None` for a folder of which nothing is known.
///
/// # Errors
/// When it cannot be read, or is of no known format.
pub(super) fn open(path: &Path) -> Result<Option<Inputs>> {
    if !path.is_dir() {
        return Ok(Some(Inputs {
            path: path.into(),
            manifest: None,
            is_run: false,
            traces: open_file(path)?,
        }));
    }
    let manifest = if path.join("run.json").exists() { Some(Manifest::read(path)?) } else { None };
    let files = match &manifest {
        Some(manifest) => files_of(path, manifest),
        None => files_in(path)?,
    };
    if manifest.is_none() && files.is_empty() {
        return open_folder(path);
    }
    let mut traces = Vec::new();
    for file in files {
        traces.append(&mut open_file(&file)?);
    }
    Ok(Some(Inputs { path: path.into(), manifest, is_run: true, traces }))
}

fn files_of(run: &Path, manifest: &Manifest) -> Vec<PathBuf> {
    let user = manifest.user_side.iter().map(|side| &side.file);
    manifest.kernel_side.file.iter().chain(user).map(|file| run.join(file)).collect()
}

/// A run whose recorder was killed has no manifest.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let is_one = |path: &PathBuf| {
        path.is_file() && path.extension().is_some_and(|e| e == "fut" || e == "dat" || e == "perf")
    };
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_one).collect();
    files.sort();
    Ok(files)
}

/// A trace that is a folder, as those of LTTng are.
fn open_folder(path: &Path) -> Result<Option<Inputs>> {
    match fkt_ingest::open(path) {
        Ok(opened) => {
            let traces = opened.iter().map(|trace| of_trace_file(path, trace.as_ref())).collect();
            Ok(Some(Inputs { path: path.into(), manifest: None, is_run: false, traces }))
        }
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::NotThisFormat) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn open_file(path: &Path) -> Result<Vec<(Held, Vec<TraceStream>)>> {
    let mut head = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.take(64).read_to_end(&mut head).with_context(|| path.display().to_string())?;
    if UserTrace::is_user_trace(&head) {
        return Ok(vec![of_user_trace(path)?]);
    }
    match fkt_ingest::open(path) {
        Ok(traces) => Ok(traces.iter().map(|trace| of_trace_file(path, trace.as_ref())).collect()),
        Err(error) if error.kind() == ErrorKind::NotThisFormat => match Listing::open(path)? {
            Some(listing) => Ok(vec![of_listing(path, listing)]),
            None => {
                bail!("{error}; it is a file, so not a super-trace, and neither a user trace nor a listing")
            }
        },
        Err(error) => Err(error.into()),
    }
}

fn of_trace_file(path: &Path, trace: &dyn TraceFile) -> (Held, Vec<TraceStream>) {
    let mut held = Held::new(path, trace.format(), trace.event_types().to_vec());
    held.facts = trace.facts();
    held.tick_hz = trace.tick_hz();
    held.snapshots = trace.snapshots();
    trace.lwp_names().iter().for_each(|(lwp, name)| held.name_lwp(*lwp, name));
    trace.losses().iter().for_each(|loss| held.lose(loss));
    let streams = trace.streams();
    held.streams = streams.iter().map(StreamHeld::of).collect();
    (held, streams)
}

fn of_user_trace(path: &Path) -> Result<(Held, Vec<TraceStream>)> {
    let trace = UserTrace::open(path)?;
    let format = format!("user trace version {}", fut::trace::VERSION);
    let mut held = Held::new(path, format, trace.event_types());
    held.facts = trace.processes().iter().map(|p| (format!("process {}", p.pid), p.name.clone())).collect();
    held.snapshots = trace.snapshots().to_vec();
    trace.losses().iter().chain(trace.notes()).for_each(|loss| held.lose(loss));
    let stream = |events| TraceStream {
        clock: ClockDomain::Tsc,
        cpu: None,
        buffer: String::new(),
        events: Box::new(events),
    };
    let streams: Vec<TraceStream> = trace.streams().into_iter().map(stream).collect();
    // One stream for each LWP, in this order.
    for (lwp, stream) in trace.lwps().iter().zip(&streams) {
        held.streams.push(StreamHeld {
            lwp: Some(lwp.lwp),
            lost: lwp.lost,
            first: lwp.heads().next().map(|head| head.first_tick),
            last: lwp.heads().last().map(|head| head.last_tick),
            ..StreamHeld::of(stream)
        });
    }
    Ok((held, streams))
}

fn of_listing(path: &Path, listing: Listing) -> (Held, Vec<TraceStream>) {
    let mut held = Held::new(path, "listing".into(), listing.types);
    held.tick_hz = listing.tick_hz;
    listing.losses.iter().for_each(|loss| held.lose(loss));
    held.streams = listing.streams.iter().map(StreamHeld::of).collect();
    (held, listing.streams)
}
