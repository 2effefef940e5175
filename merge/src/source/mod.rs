//! Inputs: what a path is, by its content, and its events as streams with a clock.

mod clock;
mod numbers;
mod run;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use fkt_ingest::{PerfData, TraceDat};
use fut::trace::{LwpPackets, UserTrace};
use sigmund_model::{
    ClockDomain, EventStream, EventType, Hertz, Level, Loss, LossKind, Lwp, Snapshot, Thread,
};

pub(crate) use clock::MainClock;
use numbers::Renumbered;

use crate::{
    error::Error,
    listing,
    symbols::{self, Symbols},
};

/// One opened input: a file with events of one side, or a listing of both.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) types: Vec<EventType>,
    pub(crate) streams: Vec<Box<dyn EventStream + Send>>,
    pub(crate) clock: ClockDomain,
    /// Ticks per second, where the input itself says so.
    pub(crate) tick_hz: Option<Hertz>,
    pub(crate) snapshots: Vec<(ClockDomain, Snapshot)>,
    pub(crate) lwp_names: Vec<(Lwp, String)>,
    pub(crate) thread_names: Vec<(Thread, String)>,
    /// User events that LWPs could not record.
    pub(crate) lost: Vec<(Lwp, u64)>,
    /// Kernel events that were lost on CPUs.
    pub(crate) cpus_lost: Vec<(u32, u64)>,
    pub(crate) losses: Vec<Loss>,
    /// Whether its probes may put LWPs on CPUs: a listing says so, and switches of the kernel allow it.
    pub(crate) probes_place: bool,
    /// Whether its user threads are numbered by their own process, and not by whoever wrote the input.
    pub(crate) numbers_its_threads: bool,
    /// Facts for the table `info`.
    pub(crate) facts: Vec<(String, String)>,
}

impl Source {
    pub(crate) fn new(path: &Path, clock: ClockDomain) -> Source {
        Source {
            path: path.to_path_buf(),
            types: Vec::new(),
            streams: Vec::new(),
            clock,
            tick_hz: None,
            snapshots: Vec::new(),
            lwp_names: Vec::new(),
            thread_names: Vec::new(),
            lost: Vec::new(),
            cpus_lost: Vec::new(),
            losses: Vec::new(),
            probes_place: false,
            numbers_its_threads: false,
            facts: Vec::new(),
        }
    }
}

/// Opens what is at `paths`: run directories, trace.dat files, user traces, listings, in any mix.
pub(crate) fn open(paths: &[PathBuf], clock: Option<ClockDomain>) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            sources.append(&mut run::open(path, clock)?);
        } else {
            sources.push(open_file(path, clock)?);
        }
    }
    number_processes(&mut sources);
    Ok(sources)
}

fn open_file(path: &Path, clock: Option<ClockDomain>) -> Result<Source, Error> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(Error::io(path))?;
    file.take(64).read_to_end(&mut head).map_err(Error::io(path))?;
    if UserTrace::is_user_trace(&head) {
        user_trace(path)
    } else if TraceDat::is_trace_dat(&head) {
        trace_dat(path, clock)
    } else if PerfData::is_perf_data(&head) {
        perf_data(path, clock)
    } else if listing::is_listing(&head) {
        listing::open(path)
    } else {
        let found = format!("{:?}", String::from_utf8_lossy(&head[..head.len().min(16)]));
        Err(Error::bad(path, "byte 0", "a trace.dat, a user trace, or a listing with a header line", found))
    }
}

fn user_trace(path: &Path) -> Result<Source, Error> {
    let trace = UserTrace::open(path)?;
    let mut source = Source::new(path, ClockDomain::Tsc);
    source.types = trace.event_types();
    source.numbers_its_threads = true;
    source.snapshots = trace.snapshots().to_vec();
    source.losses = trace.losses().iter().chain(trace.notes()).cloned().collect();
    source.losses.extend(trace.lwps().iter().filter(|lwp| !lwp.ended).map(|lwp| not_ended(path, lwp)));
    source.lost = trace.lwps().iter().map(|lwp| (lwp.lwp, lwp.lost)).collect();
    source.facts = trace.processes().iter().map(|p| (format!("process_{}", p.pid), p.name.clone())).collect();
    let boxed = |stream| Box::new(stream) as Box<dyn EventStream + Send>;
    let streams = trace.streams().into_iter().map(boxed).collect();
    source.streams = symbols::named(streams, &source.types, Symbols::of(&trace, path));
    Ok(source)
}

/// A trace that was cut between two packets: only the missing end of its LWPs tells.
fn not_ended(path: &Path, lwp: &LwpPackets) -> Loss {
    let detail =
        format!("{}: expected the end of LWP {}, found the end of the file", path.display(), lwp.lwp);
    let from = lwp.heads().last().map(|head| head.last_tick);
    Loss { lwp: Some(lwp.lwp), from, ..Loss::new(LossKind::Truncated, Level::User, detail) }
}

fn trace_dat(path: &Path, clock: Option<ClockDomain>) -> Result<Source, Error> {
    let trace = TraceDat::open(path)?;
    let named = trace.clock();
    let clock = clock.or(named).unwrap_or(ClockDomain::Local);
    let mut source = Source::new(path, clock);
    source.types = trace.event_types().to_vec();
    source.losses = trace.losses().to_vec();
    source.lwp_names = trace.lwp_names().to_vec();
    source.probes_place = source.types.iter().any(|t| t.name == "sched_switch");
    // `ns = tsc × mult >> shift`, where the machine's kernel knew it.
    source.tick_hz = trace
        .tsc_to_nanos()
        .filter(|_| clock == ClockDomain::Tsc)
        .and_then(|c| Hertz::new(2f64.powi(c.shift.min(63) as i32) * 1e9 / f64::from(c.mult)));
    let boxed = |stream| Box::new(stream) as Box<dyn EventStream + Send>;
    source.streams = trace.streams().into_iter().map(boxed).collect();
    Ok(source)
}

fn perf_data(path: &Path, clock: Option<ClockDomain>) -> Result<Source, Error> {
    let trace = PerfData::open(path)?;
    let mut source = Source::new(path, clock.unwrap_or(trace.clock()));
    source.types = trace.event_types().to_vec();
    source.losses = trace.losses().to_vec();
    source.lwp_names = trace.lwp_names().to_vec();
    source.probes_place = true;
    // Its ticks stay nanoseconds here; `MainClock` brings them over.
    let boxed = |stream| Box::new(stream) as Box<dyn EventStream + Send>;
    source.streams = trace.streams(None).into_iter().map(boxed).collect();
    Ok(source)
}

/// User threads are numbered by their process. Of several processes, each but the first gets numbers of its own.
fn number_processes(sources: &mut [Source]) {
    for (index, source) in sources.iter_mut().filter(|s| s.numbers_its_threads).enumerate().skip(1) {
        let streams = std::mem::take(&mut source.streams);
        source.streams = streams
            .into_iter()
            .map(|stream| {
                Box::new(Renumbered::new(stream, index as u64, &source.types)) as Box<dyn EventStream + Send>
            })
            .collect();
    }
}
