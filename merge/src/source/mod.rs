//! Inputs. Determines from its content what a path is, and gives its events as streams with a clock.

mod carried;
mod clock;
mod cut;
mod far;
mod joined;
mod namespace;
mod numbers;
mod parts;
mod run;
mod twice;

use std::{
    fs::File,
    io::{Read, Seek},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use fkt_ingest::{ErrorKind, Listing, OpenOptions, TraceFile, TraceStream};
use fut::trace::{LwpPackets, ProbeCosts, UserTrace};
use sigmund_files::open_regular;
use sigmund_model::{
    ClockDomain, ClockPair, EventStream, EventType, Hertz, Level, Loss, LossKind, Lwp, Pid, Snapshot, Thread,
    Ticks, names, tables::info_keys,
};

pub(crate) use carried::{CarriedOver, CarriedThread};
pub(crate) use clock::{MainClock, Sighting};
pub(crate) use far::leave_out_far_events;
pub(crate) use namespace::FIRST_WITHOUT_KERNEL;
use numbers::Renumbered;
use twice::Inputs;

use crate::{
    error::Error,
    merge::MergeOptions,
    symbols::{self, Symbols},
};

/// Names of the kernel's switches in trace.dat and CTF, perf, FxT and listings.
const SWITCHES: [&str; 5] =
    ["sched_switch", "perf_switch_in", "perf_switch_out", "switch_to", names::KERN_CONTEXT_SWITCH];

/// An LWP of a process, according to its user events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) lwp: Lwp,
    pub(crate) pid: Pid,
    /// Its last user event.
    pub(crate) last: Ticks,
    /// Whether these may be several LWPs, one after the other, with the same number.
    pub(crate) several: bool,
}

/// One opened input: a file with events of one side, or a listing of both.
pub(crate) struct OpenedInput {
    pub(crate) path: PathBuf,
    pub(crate) types: Vec<EventType>,
    pub(crate) streams: Vec<TraceStream>,
    /// Ticks per second, if the input contains this.
    pub(crate) tick_hz: Option<Hertz>,
    pub(crate) snapshots: Vec<(ClockDomain, Snapshot)>,
    pub(crate) clock_pairs: Vec<ClockPair>,
    pub(crate) lwp_names: Vec<(Lwp, String)>,
    pub(crate) thread_names: Vec<(Thread, String)>,
    /// The processes of LWPs that lived when the recording began.
    pub(crate) processes: Vec<(Lwp, Pid)>,
    /// Number of user events that each LWP could not record.
    pub(crate) lost: Vec<(Lwp, u64)>,
    /// Number of user events of threads without a ring, if the input contains this.
    pub(crate) lost_without_ring: u64,
    /// LWPs that recorded user events.
    pub(crate) carriers: Vec<Recorded>,
    /// Number of kernel events that were lost on each CPU.
    pub(crate) cpus_lost: Vec<(u32, u64)>,
    pub(crate) losses: Vec<Loss>,
    /// Whether probes may put LWPs on CPUs. True for a listing, and for an input that has switches of the kernel.
    pub(crate) probes_place: bool,
    /// Whether no switch of a CPU is missing after the first event of that CPU. The writers of a listing state this. It
    /// is not so for a recorder, which switches on one tracepoint after the other.
    pub(crate) followed_from_start: bool,
    /// TSC at which recording of the kernel was stopped, if the input contains this.
    pub(crate) stopped: Option<Ticks>,
    /// Whether switches between LWPs other than the program's were left out on purpose.
    pub(crate) others_unseen: bool,
    /// Whether its user threads are numbered by their own process, and not by the writer of the input.
    pub(crate) numbers_its_threads: bool,
    /// Facts for the table `info`.
    pub(crate) facts: Vec<(String, String)>,
    /// If the recorder had not finished the run: what was done to finish it.
    pub(crate) finished: Option<String>,
    /// What a rotated recording has removed. The number counts the events of its first part that are left out.
    pub(crate) removed: Vec<(Loss, Arc<AtomicU64>)>,
    /// User threads that are older than the kept events.
    pub(crate) carried: Option<CarriedOver>,
}

impl OpenedInput {
    /// The process of its user events, if there is only one.
    pub(crate) fn process(&self) -> Option<Pid> {
        let mut pids = self.carriers.iter().map(|recorded| recorded.pid);
        let first = pids.next()?;
        pids.all(|pid| pid == first).then_some(first)
    }

    /// Whether it may contain switches of the kernel, according to the events that it declares.
    pub(crate) fn has_switches(&self) -> bool {
        let is_switch = |name: &str| SWITCHES.contains(&name);
        self.types.iter().any(|ty| ty.level == Level::Kern && is_switch(&ty.name))
    }

    pub(crate) fn new(path: &Path) -> OpenedInput {
        OpenedInput {
            path: path.to_path_buf(),
            types: Vec::new(),
            streams: Vec::new(),
            tick_hz: None,
            snapshots: Vec::new(),
            clock_pairs: Vec::new(),
            lwp_names: Vec::new(),
            thread_names: Vec::new(),
            processes: Vec::new(),
            lost: Vec::new(),
            lost_without_ring: 0,
            carriers: Vec::new(),
            cpus_lost: Vec::new(),
            losses: Vec::new(),
            probes_place: false,
            followed_from_start: false,
            stopped: None,
            others_unseen: false,
            numbers_its_threads: false,
            facts: Vec::new(),
            finished: None,
            removed: Vec::new(),
            carried: None,
        }
    }
}

/// Opens the inputs at `paths`: any mix of run directories, traces of any format, user traces and listings. Inputs that
/// are given twice are left out; the returned sentences report this.
pub(crate) fn open(
    paths: &[PathBuf],
    options: &MergeOptions,
) -> Result<(Vec<OpenedInput>, Vec<String>), Error> {
    let (mut sources, mut inputs) = (Vec::new(), Inputs::default());
    for path in paths {
        if let Some(run) = run::find(path)? {
            sources.append(&mut run::open(path, &run, &mut inputs, options)?);
        } else {
            sources.append(&mut open_trace(path, &mut inputs, options)?);
        }
    }
    // Beside other inputs, an input may be empty. A single empty input is an error of the user. If it was cut or
    // damaged, that is a loss.
    let is_empty = |s: &OpenedInput| s.numbers_its_threads && s.streams.is_empty() && s.losses.is_empty();
    if let [path] = paths
        && sources.iter().all(is_empty)
    {
        return Err(Error::bad(path, "user trace", "packets with events of an LWP", "none"));
    }
    number_processes(&mut sources);
    Ok((sources, inputs.left_out()))
}

/// Opens one input that is not a run. The order of its sources is always the same.
fn open_trace(path: &Path, inputs: &mut Inputs, options: &MergeOptions) -> Result<Vec<OpenedInput>, Error> {
    if path.is_dir() {
        return if inputs.take_folder(path)? { open_folder(path, options) } else { Ok(Vec::new()) };
    }
    let sources = open_file(path, open_regular(path).map_err(Error::io(path))?, inputs, options)?;
    Ok(namespace::renumber_marked(path, sources, inputs))
}

/// Opens a folder that is a trace, like those of LTTng.
fn open_folder(path: &Path, options: &MergeOptions) -> Result<Vec<OpenedInput>, Error> {
    match fkt_ingest::open_with(path, &how(options)) {
        Ok(traces) => Ok(trace_files(path, &traces, options)),
        Err(error) if error.kind() == ErrorKind::NotThisFormat => {
            let expected = "a run (run.json, kernel.dat or kernel.perf, user-PID.fut), a CTF trace (metadata), or a \
                perf.data of several files (data)";
            Err(Error::bad(path, "folder", expected, "none of these files"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the contents of an open file; `path` is its name. Returns nothing if the file is already an input.
fn open_file(
    path: &Path,
    file: File,
    inputs: &mut Inputs,
    options: &MergeOptions,
) -> Result<Vec<OpenedInput>, Error> {
    if !inputs.take_file(path, &file)? {
        return Ok(Vec::new());
    }
    let head = head(path, &file)?;
    if UserTrace::is_user_trace(&head) {
        let trace = UserTrace::of_file(path, file)?;
        inputs.take_packets(path, &trace)?;
        return Ok(vec![of_user_trace(path, &trace)]);
    }
    let again = file.try_clone().map_err(Error::io(path))?;
    match fkt_ingest::open_file(path, again, &how(options)) {
        Ok(traces) => Ok(trace_files(path, &traces, options)),
        Err(error) if error.kind() == ErrorKind::NotThisFormat => match Listing::of_file(path, file)? {
            Some(listing) => Ok(vec![of_listing(path, listing)]),
            None => Err(unknown(path, &head)),
        },
        Err(error) => Err(error.into()),
    }
}

fn how(options: &MergeOptions) -> OpenOptions {
    OpenOptions { event_names: options.event_names.clone() }
}

fn trace_files(path: &Path, traces: &[Box<dyn TraceFile>], options: &MergeOptions) -> Vec<OpenedInput> {
    traces.iter().map(|trace| trace_file(path, trace.as_ref(), options.clock)).collect()
}

fn unknown(path: &Path, head: &[u8]) -> Error {
    let expected = "a trace.dat, a perf.data, a trace of CTF or FxT, a text of ftrace, a user trace, \
        or a listing with a header line";
    let found = format!("{:?}", String::from_utf8_lossy(&head[..head.len().min(16)]));
    Error::bad(path, "byte 0", expected, found)
}

/// The beginning of a file.
pub(crate) fn head(path: &Path, mut file: &File) -> Result<Vec<u8>, Error> {
    let mut head = Vec::new();
    file.take(64).read_to_end(&mut head).map_err(Error::io(path))?;
    file.rewind().map_err(Error::io(path))?;
    Ok(head)
}

fn of_user_trace(path: &Path, trace: &UserTrace) -> OpenedInput {
    let mut source = OpenedInput::new(path);
    source.types = trace.event_types();
    source.numbers_its_threads = true;
    source.snapshots = trace.snapshots().to_vec();
    source.losses = trace.losses().iter().chain(trace.notes()).cloned().collect();
    source.losses.extend(trace.lwps().iter().filter(|lwp| !lwp.ended).map(|lwp| not_ended(path, lwp)));
    source.lost = trace.lwps().iter().map(|lwp| (lwp.lwp, lwp.lost)).collect();
    source.lost_without_ring = trace.unattached_lost();
    source.carriers = trace.lwps().iter().map(recorded).collect();
    source.facts = trace.processes().iter().map(|p| (format!("process_{}", p.pid), p.name.clone())).collect();
    source.facts.extend(trace.costs().iter().flat_map(|(pid, costs)| cost_facts(*pid, costs)));
    let boxed = |stream| Box::new(stream) as Box<dyn EventStream + Send>;
    let streams = trace.streams().into_iter().map(boxed).collect();
    let streams = symbols::named(streams, &source.types, Symbols::of(trace, path));
    source.streams = streams.into_iter().map(|events| stream_of(ClockDomain::Tsc, events)).collect();
    source.carried = carried::of_live(trace, &mut source.losses);
    source
}

fn cost_facts(pid: Pid, costs: &ProbeCosts) -> [(String, String); 3] {
    let fact = |key: &str, ticks: f64| (format!("{key}{pid}"), ticks.to_string());
    [
        fact(info_keys::PROBE_TICKS, costs.record),
        fact(info_keys::PROBE_WORD_TICKS, costs.per_word),
        fact(info_keys::PROBE_CLOCK_TICKS, costs.clock_read),
    ]
}

/// When an LWP has recorded its last event, as far as packet headers can be trusted.
fn recorded(lwp: &LwpPackets) -> Recorded {
    let last = lwp.heads().map(|head| head.last_tick).max().unwrap_or(Ticks(0));
    Recorded { lwp: lwp.lwp, pid: lwp.pid, last, several: lwp.ends > 1 }
}

/// The loss for a trace that was cut between two packets. Only the missing ends of its LWPs show this.
fn not_ended(path: &Path, lwp: &LwpPackets) -> Loss {
    let detail =
        format!("{}: expected the end of LWP {}, found the end of the file", path.display(), lwp.lwp);
    let from = lwp.heads().last().map(|head| head.last_tick);
    Loss { lwp: Some(lwp.lwp), from, ..Loss::new(LossKind::Truncated, Level::User, detail) }
}

fn trace_file(path: &Path, trace: &dyn TraceFile, clock: Option<ClockDomain>) -> OpenedInput {
    let mut source = OpenedInput::new(path);
    source.types = trace.event_types().to_vec();
    source.losses = trace.losses().to_vec();
    source.lwp_names = trace.lwp_names().to_vec();
    source.snapshots = trace.snapshots();
    source.clock_pairs = trace.clock_pairs();
    source.tick_hz = trace.tick_hz();
    source.facts = trace.facts();
    source.probes_place = source.types.iter().any(|t| SWITCHES.contains(&t.name.as_str()));
    source.streams = trace.streams();
    if let Some(clock) = clock {
        source.streams.iter_mut().for_each(|stream| stream.clock = clock);
    }
    source
}

fn of_listing(path: &Path, listing: Listing) -> OpenedInput {
    let mut source = OpenedInput::new(path);
    source.probes_place = true;
    source.followed_from_start = true;
    source.types = listing.types;
    source.streams = listing.streams;
    source.tick_hz = listing.tick_hz;
    source.thread_names = listing.thread_names;
    source.losses = listing.losses;
    source
}

/// A stream that is not that of one CPU.
pub(crate) fn stream_of(clock: ClockDomain, events: Box<dyn EventStream + Send>) -> TraceStream {
    TraceStream { clock, cpu: None, buffer: String::new(), events }
}

/// User threads are numbered by their process. If there are several processes, each but the first gets other numbers.
fn number_processes(sources: &mut [OpenedInput]) {
    for (index, source) in sources.iter_mut().filter(|s| s.numbers_its_threads).enumerate().skip(1) {
        let streams = std::mem::take(&mut source.streams);
        let renumbered = |stream: TraceStream| {
            let events = Box::new(Renumbered::new(stream.events, index as u64, &source.types));
            TraceStream { events, ..stream }
        };
        source.streams = streams.into_iter().map(renumbered).collect();
        source.carried = source.carried.take().map(|mut carried| {
            let number = |thread| numbers::of_process(index as u64, thread);
            carried.threads.iter_mut().for_each(|thread| thread.renumber_threads(number));
            carried.spans = Box::new(Renumbered::new(carried.spans, index as u64, &source.types));
            carried
        });
    }
}
