//! The inputs of `merge` at a path, a file of any format or a run, read without merging them: for `info` and `check`.

mod trace_summary;

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use fkt_ingest::{ErrorKind, Listing, OpenOptions, TraceFile, TraceStream, live::part_name};
use fut::trace::UserTrace;
use sigmund_files::{Folder, open_regular};
use sigmund_merge::{Manifest, user_part_name, whole_and_part};
use sigmund_model::{ClockDomain, Level, Loss, LossKind};

use crate::output::Progress;

pub(crate) use trace_summary::{StreamSummary, TraceSummary};

/// The traces at a path.
pub(crate) struct Inputs {
    pub(crate) path: PathBuf,
    /// If it is a run that was ended properly: its manifest, with how, when and where it was recorded.
    pub(crate) manifest: Option<Manifest>,
    pub(crate) is_run: bool,
    /// Each trace with its streams, which have not been read yet.
    pub(crate) traces: Vec<(TraceSummary, Vec<TraceStream>)>,
}

impl Inputs {
    /// Reads each trace to its end.
    pub(crate) fn counted(self) -> Vec<TraceSummary> {
        let progress = Progress::new();
        let count = |(mut trace, streams): (TraceSummary, Vec<TraceStream>)| {
            let path = trace.path.display().to_string();
            trace.count(streams, |events| progress.show(&format!("reading {path}, {events} events")));
            trace
        };
        let counted = self.traces.into_iter().map(count).collect();
        progress.clear();
        counted
    }
}

/// Opens the traces at `path`; `None` for a folder that is not recognised.
///
/// # Errors
/// When it cannot be read, or its format is unknown.
pub(crate) fn open(path: &Path) -> Result<Option<Inputs>> {
    let shown = || path.display().to_string();
    if !path.is_dir() {
        let traces = open_file(path, open_regular(path).with_context(shown)?)?;
        return Ok(Some(Inputs { path: path.into(), manifest: None, is_run: false, traces }));
    }
    let folder = Folder::open(path).with_context(shown)?;
    let manifest = if folder.has("run.json") { Some(Manifest::read_in(&folder)?) } else { None };
    let files = match &manifest {
        Some(manifest) if !manifest.unfinished => files_of(manifest),
        _ => files_in(&folder).with_context(shown)?,
    };
    if manifest.is_none() && files.is_empty() {
        return open_folder(path);
    }
    let mut traces = Vec::new();
    for name in files {
        let path = folder.path_of(&name);
        match folder.open_file(&name) {
            Ok(file) => traces.append(&mut open_file(&path, file)?),
            // The others can be read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                traces.push((missing(&path, &error), Vec::new()));
            }
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
    }
    Ok(Some(Inputs { path: path.into(), manifest, is_run: true, traces }))
}

/// Stands for a file of a run that is not there.
fn missing(path: &Path, error: &io::Error) -> TraceSummary {
    let mut missing = TraceSummary::new(path, "missing".into(), Vec::new());
    let level = if path.extension().is_some_and(|e| e == "fut") { Level::User } else { Level::Kern };
    missing.lose(&Loss::new(LossKind::Truncated, level, error.to_string()));
    missing
}

fn files_of(manifest: &Manifest) -> Vec<OsString> {
    if let Some(rotation) = &manifest.rotation {
        let kernel = manifest.kernel_side.file.iter().flat_map(|_| rotation.first..=rotation.last);
        let user = manifest.user_side.iter().flat_map(|side| {
            let parts = side.parts.iter().map(|part| user_part_name(&side.file, *part));
            parts.chain(side.parts.is_empty().then(|| side.file.clone()))
        });
        return kernel.map(part_name).chain(user).map(OsString::from).collect();
    }
    let user = manifest.user_side.iter().map(|side| &side.file);
    manifest.kernel_side.file.iter().chain(user).map(OsString::from).collect()
}

/// The traces of a run that is not finished, or whose recorder was killed.
fn files_in(folder: &Folder) -> io::Result<Vec<OsString>> {
    let is_one = |name: &OsString| {
        let extension = Path::new(name).extension();
        !folder.has_folder(name) && extension.is_some_and(|e| e == "fut" || e == "dat" || e == "perf")
    };
    Ok(folder.names()?.into_iter().filter(is_one).collect())
}

/// Opens a trace that is a folder, as LTTng writes it.
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

fn open_file(path: &Path, mut file: File) -> Result<Vec<(TraceSummary, Vec<TraceStream>)>> {
    let mut head = Vec::new();
    let read = file.by_ref().take(64).read_to_end(&mut head).and_then(|_| file.rewind());
    let again = read.and_then(|()| file.try_clone()).with_context(|| path.display().to_string())?;
    if UserTrace::is_user_trace(&head) {
        return Ok(vec![of_user_trace(path, file)?]);
    }
    match fkt_ingest::open_file(path, again, &OpenOptions::default()) {
        Ok(traces) => Ok(traces.iter().map(|trace| of_trace_file(path, trace.as_ref())).collect()),
        Err(error) if error.kind() == ErrorKind::NotThisFormat => match Listing::of_file(path, file)? {
            Some(listing) => Ok(vec![of_listing(path, listing)]),
            None => {
                bail!("{error}; a file is not a super-trace, and it is neither a user trace nor a listing")
            }
        },
        Err(error) => Err(error.into()),
    }
}

fn of_trace_file(path: &Path, trace: &dyn TraceFile) -> (TraceSummary, Vec<TraceStream>) {
    let mut held = TraceSummary::new(path, trace.format(), trace.event_types().to_vec());
    held.facts = trace.facts();
    held.tick_hz = trace.tick_hz();
    held.snapshots = trace.snapshots();
    trace.lwp_names().iter().for_each(|(lwp, name)| held.name_lwp(*lwp, name));
    trace.losses().iter().for_each(|loss| held.lose(loss));
    let streams = trace.streams();
    held.streams = streams.iter().map(StreamSummary::of).collect();
    (held, streams)
}

fn of_user_trace(path: &Path, file: File) -> Result<(TraceSummary, Vec<TraceStream>)> {
    let part = path.file_name().and_then(|name| whole_and_part(name.to_str()?));
    let trace = match part {
        // What is before a part is in other parts, or was removed.
        Some((_, 2..)) => UserTrace::of_parts(path, vec![(path.into(), file)], true)?,
        _ => UserTrace::of_file(path, file)?,
    };
    let format = format!("user trace version {}", fut::trace::VERSION);
    let mut held = TraceSummary::new(path, format, trace.event_types());
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
    // There is one stream for each LWP, in the same order.
    for (lwp, stream) in trace.lwps().iter().zip(&streams) {
        held.streams.push(StreamSummary {
            lwp: Some(lwp.lwp),
            lost: lwp.lost,
            first: lwp.heads().next().map(|head| head.first_tick),
            last: lwp.heads().last().map(|head| head.last_tick),
            ..StreamSummary::of(stream)
        });
    }
    Ok((held, streams))
}

fn of_listing(path: &Path, listing: Listing) -> (TraceSummary, Vec<TraceStream>) {
    let mut held = TraceSummary::new(path, "listing".into(), listing.types);
    held.tick_hz = listing.tick_hz;
    listing.losses.iter().for_each(|loss| held.lose(loss));
    held.streams = listing.streams.iter().map(StreamSummary::of).collect();
    (held, listing.streams)
}
