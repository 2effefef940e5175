//! The merge itself: inputs in, a super-trace out.

use std::{
    cmp::Reverse,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use fkt_ingest::{EventNames, TraceStream};
use sigmund_files::Owner;
use sigmund_model::{
    ClockDomain, Event, Hertz, Level, Loss, Reported, Ticks,
    tables::{CLOCKS, CPUS, EVENT_TYPES, INFO, LOSSES},
    vocabulary::Meaning,
};

use crate::{
    error::Error,
    input_event_types::InputEventTypes,
    machine::{Finished, Intervals, Machine, Placed},
    order::{Ordered, Step},
    recordings::Span,
    source::{self, CarriedOver, MainClock, OpenedInput, leave_out_far_events},
    summary::Summary,
    tables::{
        Directory, EventRows,
        about::{self, write_clocks, write_cpus, write_event_types, write_info, write_losses},
    },
    worker_pool::WorkerPool,
};

/// Number of events between two checks whether to stop, and between two reports of progress.
const EVENTS_A_REPORT: u64 = 1 << 16;

/// Choices for a merge.
#[derive(Clone, Debug, Default)]
pub struct MergeOptions {
    /// Overwrite a super-trace that already exists.
    pub force: bool,
    /// The clock of kernel traces whose file has a wrong one or none.
    pub clock: Option<ClockDomain>,
    /// Ticks per second, for inputs that do not contain this.
    pub tick_hz: Option<Hertz>,
    /// Names of events that are only numbers in the inputs (FxT).
    pub event_names: EventNames,
    /// Correct CPUs whose time-stamp counters differ slightly (large NUMA machines), using what LWPs did on two of
    /// them. For this, the kernel trace is read once more. Nothing is changed where no order of events is violated.
    /// Merges that would need it count LWPs that were put on a second CPU (losses, kind contradiction).
    pub align_cpus: bool,
    /// Number of threads to use; by default, the number of CPUs for this process. It does not affect what is written.
    pub threads: Option<NonZeroUsize>,
    /// The owner of the super-trace, for example the user who called sudo. Folders of this user count as the caller's
    /// own.
    pub owner: Option<Owner>,
    /// Names of tables to leave out, of [`OPTIONAL`](sigmund_model::tables::OPTIONAL).
    pub left_out_tables: Vec<String>,
    /// If this is set from outside, the merge ends with [`Error::Interrupted`].
    pub stop: Option<Arc<AtomicBool>>,
}

/// The progress of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events merged.
    pub events: u64,
    /// Bytes of the super-trace that have been written.
    pub bytes: u64,
}

/// Merges the inputs into a super-trace at `out`. `progress` is called from time to time.
///
/// # Errors
/// If an input cannot be opened, the inputs have no common clock, the output cannot be written, or the merge is told to
/// stop. Then what was at `out` before is still there, and nothing else.
pub fn merge(
    inputs: &[PathBuf],
    out: &Path,
    options: &MergeOptions,
    mut progress: impl FnMut(Progress),
) -> Result<Summary, Error> {
    let (mut sources, left_out) = source::open(inputs, options)?;
    let clock = MainClock::choose(&mut sources, options)?;
    leave_out_far_events(&mut sources, clock.tick_hz);
    let pool = worker_pool(options);
    let directory = Directory::create(out, options, pool.clone())?;
    let probes_place = sources.iter().any(|s| s.probes_place);
    let mut machine = Machine::new(Intervals::create(&directory, &options.left_out_tables)?, probes_place);
    machine.tick_hz = clock.tick_hz;
    if sources.iter().any(|s| s.others_unseen) {
        machine.others_are_unseen();
    }
    let spans = spans(&sources, clock.domain);
    if sources.iter().all(|s| s.followed_from_start || !s.probes_place)
        && !spans.iter().any(|span| span.misses_no_switch)
    {
        machine.follow_from_start();
    }
    let event_types = InputEventTypes::of(&sources);
    let rows = EventRows::create(&directory, event_types.iter().map(|ty| &ty.event_type))?;
    let finished = sources.iter_mut().filter_map(|source| source.finished.take()).collect();
    let assumed = assumed(options, &clock);
    let summary = Summary { tick_hz: clock.tick_hz, assumed, finished, left_out, ..Summary::default() };
    let mut merging = Merging {
        machine,
        event_types,
        rows,
        summary,
        placed: Placed::default(),
        carried: carried_over(&mut sources),
        carried_at: Ticks(0),
    };
    merging.carried_at = merging.next_carried();

    let (streams, mut losses) = merging.begin(&mut sources)?;
    let mut ordered = Ordered::new(streams, spans, pool.as_ref())?;
    ordered.each(|step| {
        let events = match step {
            Step::Event(source, event) => merging.take(source, event)?,
            Step::Missing(loss) => return merging.machine.missing(loss),
            Step::Begin(begin) => return merging.machine.recording_begins(begin),
            Step::End(end) => return merging.machine.recording_ends(end),
        };
        if events.is_multiple_of(EVENTS_A_REPORT) {
            if options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(Error::Interrupted);
            }
            progress(Progress { events, bytes: directory.written() });
        }
        Ok(())
    })?;

    while let Some((_, carried)) = merging.carried.last() {
        merging.carry_over(carried.begins)?;
    }
    losses.append(&mut ordered.take_losses());
    losses.extend(sources.iter().flat_map(|source| &source.removed).map(about::removed));
    losses.append(&mut about::uncounted_losses(&sources, &losses));
    losses.append(&mut about::empty_sides(&sources, &merging.summary, &losses));
    about::judge(&mut losses);
    let Merging { machine, event_types, rows, mut summary, .. } = merging;
    rows.finish()?;
    let end = summary.span.map_or(Ticks(0), |(_, last)| last);
    let Finished { intervals, cpus, losses: mut doubts, witnesses } = machine.finish(end)?;
    summary.threads = intervals.threads_written;
    summary.carriers = intervals.carriers_written;
    intervals.finish()?;
    losses.append(&mut doubts);
    summary.witness_agree = witnesses.agree;
    summary.witness_disagree = witnesses.disagree;
    summary.losses = losses;
    if ordered.late > 0 {
        let late = ordered.late;
        summary
            .assumed
            .push(format!("{late} events are older than the one before in their stream; they got its time"));
    }
    write_cpus(directory.table(&CPUS)?, &cpus, &summary.losses)?;
    write_event_types(directory.table(&EVENT_TYPES)?, &event_types)?;
    write_losses(directory.table(&LOSSES)?, &summary.losses)?;
    write_clocks(directory.table(&CLOCKS)?, &clock)?;
    write_info(
        directory.table(&INFO)?,
        &sources,
        &clock,
        &summary,
        witnesses,
        ordered.late,
        &options.left_out_tables,
    )?;
    directory.finish()?;
    Ok(summary)
}

/// What is known about sources at the time from which they are kept, each with the number of its source. The last one
/// is the first in time.
fn carried_over(sources: &mut [OpenedInput]) -> Vec<(usize, CarriedOver)> {
    let carried = |(source, input): (usize, &mut OpenedInput)| Some((source, input.carried.take()?));
    let mut all: Vec<_> = sources.iter_mut().enumerate().filter_map(carried).collect();
    all.sort_by_key(|(_, carried)| Reverse(carried.begins));
    all
}

/// One thread merges; the others decode and encode for it.
fn worker_pool(options: &MergeOptions) -> Option<Arc<WorkerPool>> {
    let threads = options
        .threads
        .map_or_else(|| thread::available_parallelism().map_or(1, NonZeroUsize::get), NonZeroUsize::get);
    (threads > 1).then(|| Arc::new(WorkerPool::new(threads - 1)))
}

/// What each source states about when it recorded the kernel.
fn spans(sources: &[OpenedInput], main: ClockDomain) -> Vec<Span> {
    // A listing is as complete as the recordings that are merged with it.
    let all_whole = sources.iter().all(|s| s.followed_from_start || !s.probes_place);
    let span = |source: &OpenedInput| Span {
        name: source.path.display().to_string(),
        misses_no_switch: all_whole && source.followed_from_start && source.has_switches(),
        // The recorder reads the TSC.
        stopped: source.stopped.filter(|_| main == ClockDomain::Tsc),
    };
    sources.iter().map(span).collect()
}

/// What the options state instead of the inputs.
fn assumed(options: &MergeOptions, main: &MainClock) -> Vec<String> {
    let clock = options
        .clock
        .map(|clock| format!("the clock of kernel traces is {}, as was asked for", clock.name()));
    let rate = options.tick_hz.map(|hz| match (main.is_rate_assumed, main.tick_hz) {
        (false, Some(known)) if known != hz => {
            let (known, hz) = (known.per_second(), hz.per_second());
            format!("a second has {known} ticks, as the inputs say; not {hz}, as was asked for")
        }
        _ => format!("a second has {} ticks, as was asked for", hz.per_second()),
    });
    clock.into_iter().chain(rate).collect()
}

/// The steps that each event goes through.
struct Merging {
    machine: Machine,
    event_types: InputEventTypes,
    rows: EventRows,
    summary: Summary,
    /// The place that the current event was assigned to.
    placed: Placed,
    /// Sources whose kept part begins later.
    carried: Vec<(usize, CarriedOver)>,
    /// When the next of these begins; the end of time if there is none.
    carried_at: Ticks,
}

impl Merging {
    /// Takes what the inputs state before the first event. Returns their streams, each with the number of its source,
    /// and losses.
    fn begin(&mut self, sources: &mut [OpenedInput]) -> Result<(Streams, Vec<Loss>), Error> {
        let (mut streams, mut losses) = (Vec::new(), Vec::new());
        for (index, source) in sources.iter_mut().enumerate() {
            source.lwp_names.iter().for_each(|(lwp, name)| self.machine.name_lwp(*lwp, name));
            source.thread_names.iter().for_each(|(thread, name)| self.machine.name_thread(*thread, name));
            source.lost.iter().for_each(|(lwp, lost)| self.machine.lost(*lwp, *lost));
            source.processes.iter().for_each(|(lwp, pid)| self.machine.is_of(*lwp, *pid));
            source.carriers.iter().for_each(|recorded| self.machine.expect(recorded));
            let gaps = source.losses.iter().filter(|loss| loss.from.is_some());
            gaps.into_iter().try_for_each(|loss| self.machine.missing(loss))?;
            losses.append(&mut source.losses);
            streams.extend(std::mem::take(&mut source.streams).into_iter().map(|stream| (index, stream)));
        }
        Ok((streams, losses))
    }

    fn next_carried(&self) -> Ticks {
        self.carried.last().map_or(Ticks(u64::MAX), |(_, carried)| carried.begins)
    }

    /// Takes what is known about a source whose kept part begins now. The next event is at `tick`.
    #[cold]
    fn carry_over(&mut self, tick: Ticks) -> Result<(), Error> {
        let Some((source, mut carried)) = self.carried.pop() else { return Ok(()) };
        self.carried_at = self.next_carried();
        // Nothing in the super-trace is before its first event.
        let (first, last) = *self.summary.span.get_or_insert((tick, tick));
        let tick = carried.begins.max(last);
        self.summary.span = Some((first, tick));
        for thread in &carried.threads {
            self.machine.carry_over(thread, carried.pid, tick)?;
        }
        let mut event = Event::default();
        while carried.spans.next_into(&mut event).map_err(Error::io(Path::new("")))? {
            event.tick = tick;
            let thread = if let Reported::Some(thread) = event.thread { Some(thread) } else { None };
            let placed = Placed { lwp: event.lwp, thread, ..Placed::default() };
            let (number, kind) = self.event_types.of_source(source, event.kind);
            self.machine.pair(kind, number, &event, &placed)?;
        }
        Ok(())
    }

    /// Takes the next event, and returns the number of events so far.
    #[inline]
    fn take(&mut self, source: usize, event: &Event) -> Result<u64, Error> {
        while self.carried_at <= event.tick {
            self.carry_over(event.tick)?;
        }
        let (number, kind) = self.event_types.seen(source, event);
        let level = kind.level;
        // The name of a new LWP does not apply to an earlier one with the same number.
        let is_new = kind.meaning == Some(Meaning::LwpNew);
        if !is_new {
            kind.name_lwps(event, &mut self.machine);
        }
        kind.tell_processes(event, &mut self.machine)?;
        let placed = &mut self.placed;
        self.machine.take(level, kind.pid, event, kind.declared_thread(event), placed)?;
        if is_new {
            kind.name_lwps(event, &mut self.machine);
        }
        self.machine.pair(kind, number, event, placed)?;
        let summary = &mut self.summary;
        let (first, _) = *summary.span.get_or_insert((event.tick, event.tick));
        summary.span = Some((first, event.tick));
        match level {
            Level::Kern => summary.kernel_events += 1,
            Level::User => summary.user_events += 1,
        }
        let cpu_seen = event.cpu.filter(|_| level == Level::User);
        self.rows.push(number, event, placed, cpu_seen)?;
        Ok(self.summary.kernel_events + self.summary.user_events)
    }
}

type Streams = Vec<(usize, TraceStream)>;
