//! The merge itself: inputs in, a super-trace out.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use sigmund_model::{
    ClockDomain, Event, EventType, FieldType, Hertz, Level, Loss, Lwp, Thread, Ticks,
    tables::{CLOCKS, CPUS, EVENT_TYPES, EVENTS, INFO, LOSSES, SCHEMA_VERSION, info_keys},
};

use crate::{
    error::Error,
    machine::{Finished, Intervals, Machine, Placed, Witnesses},
    order::Ordered,
    source::{self, MainClock, Source},
    tables::{Directory, TableWriter},
};

/// Choices for a merge.
#[derive(Clone, Debug, Default)]
pub struct MergeOptions {
    /// Overwrite a super-trace that is there already.
    pub force: bool,
    /// The clock of kernel traces, where the file says a wrong one or none.
    pub clock: Option<ClockDomain>,
    /// Ticks per second, where nothing says so.
    pub tick_hz: Option<Hertz>,
}

/// What a merge came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Kernel events.
    pub kernel_events: u64,
    /// User events.
    pub user_events: u64,
    /// User threads.
    pub threads: u64,
    /// LWPs that recorded user events or carry user threads.
    pub carriers: u64,
    /// First and last tick.
    pub span: Option<(Ticks, Ticks)>,
    /// Ticks per second, if known.
    pub tick_hz: Option<Hertz>,
    /// User events whose CPU both witnesses agree on.
    pub witness_agree: u64,
    /// Those they disagree on.
    pub witness_disagree: u64,
    /// What is missing.
    pub losses: Vec<Loss>,
}

impl Summary {
    /// Whether an input was damaged: what was readable is in the super-trace, and the rest is not.
    pub fn is_damaged(&self) -> bool {
        use sigmund_model::LossKind::{Damaged, Truncated};
        self.losses.iter().any(|loss| matches!(loss.kind, Damaged | Truncated))
    }
}

/// Merges the inputs into a super-trace at `out`. `progress` is called now and then with the events so far.
///
/// # Errors
/// When an input cannot be opened, the inputs have no common clock, or the output cannot be written. Nothing is left
/// at `out` then.
pub fn merge(
    inputs: &[PathBuf],
    out: &Path,
    options: &MergeOptions,
    mut progress: impl FnMut(u64),
) -> Result<Summary, Error> {
    let mut sources = source::open(inputs, options.clock)?;
    let clock = MainClock::choose(&mut sources, options.tick_hz)?;
    let directory = Directory::create(out, options.force)?;
    let probes_place = sources.iter().any(|s| s.probes_place);
    let mut machine = Machine::new(Intervals::create(&directory)?, probes_place);
    let mut kinds = Kinds::of(&sources);
    let mut losses = Vec::new();
    let mut streams = Vec::new();
    for (index, source) in sources.iter_mut().enumerate() {
        source.lwp_names.iter().for_each(|(lwp, name)| machine.name_lwp(*lwp, name));
        source.thread_names.iter().for_each(|(thread, name)| machine.name_thread(*thread, name));
        source.lost.iter().for_each(|(lwp, lost)| machine.lost(*lwp, *lost));
        losses.append(&mut source.losses);
        streams.extend(std::mem::take(&mut source.streams).into_iter().map(|stream| (index, stream)));
    }

    let mut ordered = Ordered::new(streams)?;
    let mut events = directory.table(&EVENTS)?;
    let mut summary = Summary { tick_hz: clock.tick_hz, ..Summary::default() };
    let mut take = |source: usize, event: &Event| {
        let kind = kinds.seen(source, event);
        kind.name_lwps(event, &mut machine);
        let placed = machine.take(kind.level, event, kind.declared_thread(event))?;
        let (first, _) = *summary.span.get_or_insert((event.tick, event.tick));
        summary.span = Some((first, event.tick));
        let total = match kind.level {
            Level::Kern => &mut summary.kernel_events,
            Level::User => &mut summary.user_events,
        };
        *total += 1;
        if (summary.kernel_events + summary.user_events).is_multiple_of(1 << 16) {
            progress(summary.kernel_events + summary.user_events);
        }
        write_event(&mut events, kind, event, &placed)
    };
    while ordered.next(&mut take)? {}

    losses.append(&mut ordered.take_losses());
    events.finish()?;
    let end = summary.span.map_or(Ticks(0), |(_, last)| last);
    let Finished { intervals, cpus, mut contradictions, witnesses } = machine.finish(end)?;
    summary.threads = intervals.threads_written;
    summary.carriers = intervals.carriers_written;
    intervals.finish()?;
    losses.append(&mut contradictions);
    summary.witness_agree = witnesses.agree;
    summary.witness_disagree = witnesses.disagree;
    summary.losses = losses;
    write_cpus(directory.table(&CPUS)?, &cpus, &sources, &summary.losses)?;
    write_event_types(directory.table(&EVENT_TYPES)?, &kinds)?;
    write_losses(directory.table(&LOSSES)?, &summary.losses)?;
    write_clocks(directory.table(&CLOCKS)?, &clock)?;
    write_info(directory.table(&INFO)?, &sources, &clock, &summary, witnesses, ordered.late)?;
    directory.finish()?;
    Ok(summary)
}

/// The event types of all sources.
struct Kinds {
    kinds: Vec<Kind>,
    /// Where those of each source begin.
    starts: Vec<usize>,
}

/// One event type, and what the merge needs of it at every event.
struct Kind {
    event_type: EventType,
    level: Level,
    source: String,
    events: u64,
    /// The first field that is a user thread.
    thread_field: Option<usize>,
    /// Fields that name an LWP: (its number, its name).
    lwp_name_fields: Option<(usize, usize)>,
}

impl Kinds {
    fn of(sources: &[Source]) -> Kinds {
        let mut kinds = Kinds { kinds: Vec::new(), starts: Vec::new() };
        for source in sources {
            kinds.starts.push(kinds.kinds.len());
            kinds.kinds.extend(source.types.iter().map(|event_type| Kind::new(event_type, &source.path)));
        }
        kinds
    }

    fn seen(&mut self, source: usize, event: &Event) -> &Kind {
        let kind = &mut self.kinds[self.starts[source] + event.kind as usize];
        kind.events += 1;
        kind
    }
}

impl Kind {
    fn new(event_type: &EventType, source: &Path) -> Kind {
        let lwp_name_fields = match event_type.name.as_str() {
            "sched_switch" => event_type.field("next_pid").zip(event_type.field("next_comm")),
            "perf_comm" => event_type.field("tid").zip(event_type.field("comm")),
            "sched_process_fork" => event_type.field("child_pid").zip(event_type.field("child_comm")),
            _ => None,
        };
        Kind {
            event_type: event_type.clone(),
            level: event_type.level,
            source: source.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
            events: 0,
            thread_field: event_type.fields.iter().position(|f| f.ty == FieldType::Thread),
            lwp_name_fields: lwp_name_fields.filter(|_| event_type.level == Level::Kern),
        }
    }

    fn declared_thread(&self, event: &Event) -> Option<Thread> {
        let number = event.params.get(self.thread_field?)?.number?;
        u64::try_from(number).ok().and_then(Thread::from_switch)
    }

    fn name_lwps(&self, event: &Event, machine: &mut Machine) {
        let Some((lwp, name)) = self.lwp_name_fields else { return };
        let lwp = event.params.get(lwp).and_then(|p| p.number).and_then(|n| u32::try_from(n).ok()).map(Lwp);
        let name = event.params.get(name).and_then(|p| p.text);
        if let (Some(lwp), Some(name)) = (lwp.filter(|lwp| *lwp != Lwp::IDLE), name) {
            machine.name_lwp(lwp, name);
        }
    }
}

fn write_event(events: &mut TableWriter, kind: &Kind, event: &Event, placed: &Placed) -> Result<(), Error> {
    let texts = event.params.iter().rposition(|p| p.text.is_some()).map_or(0, |last| last + 1);
    events.row(|mut row| {
        row.count(event.tick.0).text(kind.level.name());
        row.maybe_int(kind.event_type.code.map(i64::from)).text(&kind.event_type.name);
        row.maybe_int(placed.cpu.map(|c| c.0.into())).maybe_int(placed.lwp.map(|l| l.0.into()));
        row.maybe_count(placed.thread.map(|t| t.0)).text(placed.context.name());
        row.maybe_int(placed.target_lwp.map(|l| l.0.into())).maybe_count(placed.target_thread.map(|t| t.0));
        row.maybe_int(event.cpu.filter(|_| kind.level == Level::User).map(|c| c.0.into()));
        row.numbers(event.params.iter().map(|p| p.number));
        row.texts(event.params.iter().map(|p| p.text).take(texts));
    })
}

fn write_cpus(
    mut table: TableWriter,
    cpus: &BTreeMap<sigmund_model::Cpu, crate::machine::CpuEntry>,
    sources: &[Source],
    losses: &[Loss],
) -> Result<(), Error> {
    for (cpu, entry) in cpus {
        let counted =
            sources.iter().flat_map(|s| &s.cpus_lost).filter(|(c, _)| *c == cpu.0).map(|(_, lost)| lost);
        let seen =
            losses.iter().filter(|l| l.level == Level::Kern && l.cpu == Some(*cpu)).filter_map(|l| l.count);
        // The kernel's own count includes what the pages say; where there is none, the pages are all there is.
        let lost = counted.sum::<u64>().max(seen.sum());
        table.row(|mut row| {
            row.int(cpu.0).count(entry.events).count(lost).count(entry.busy).count(entry.idle);
        })?;
    }
    table.finish()
}

fn write_event_types(mut table: TableWriter, kinds: &Kinds) -> Result<(), Error> {
    for kind in &kinds.kinds {
        let event_type = &kind.event_type;
        table.row(|mut row| {
            row.text(kind.level.name()).maybe_int(event_type.code.map(i64::from)).text(&event_type.name);
            row.text(&kind.source).count(event_type.key);
            row.texts(event_type.fields.iter().map(|f| Some(f.name.as_str())));
            row.texts(event_type.fields.iter().map(|f| Some(f.ty.name())));
            row.text(&event_type.format).count(kind.events);
        })?;
    }
    table.finish()
}

fn write_losses(mut table: TableWriter, losses: &[Loss]) -> Result<(), Error> {
    for loss in losses {
        table.row(|mut row| {
            row.text(loss.kind.name()).text(loss.level.name()).text(loss.severity.name());
            row.maybe_int(loss.cpu.map(|c| c.0.into())).maybe_int(loss.lwp.map(|l| l.0.into()));
            row.maybe_count(loss.from.map(|t| t.0)).maybe_count(loss.to.map(|t| t.0)).maybe_count(loss.count);
            row.text(&loss.detail).text(loss.advice);
        })?;
    }
    table.finish()
}

fn write_clocks(mut table: TableWriter, clock: &MainClock) -> Result<(), Error> {
    for (domain, snapshot) in &clock.snapshots {
        let residual = clock.fits.get(domain).map(|fit| {
            let off = fit.to_tick(snapshot.ns).0.abs_diff(snapshot.tick().0);
            off as f64 * 1e9 / fit.rate().per_second()
        });
        table.row(|mut row| {
            row.text(domain.name()).count(snapshot.before.0).count(snapshot.after.0).count(snapshot.ns.0);
            row.maybe_float(residual);
        })?;
    }
    table.finish()
}

fn write_info(
    mut table: TableWriter,
    sources: &[Source],
    clock: &MainClock,
    summary: &Summary,
    witnesses: Witnesses,
    late: u64,
) -> Result<(), Error> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |key: &str, value: String| facts.push((key.into(), value));
    fact(info_keys::SCHEMA_VERSION, SCHEMA_VERSION.to_string());
    fact("writer", concat!("sigmund ", env!("CARGO_PKG_VERSION")).into());
    fact("main_clock", clock.domain.name().into());
    if let Some(hz) = clock.tick_hz {
        fact(info_keys::TICK_HZ, hz.per_second().to_string());
    }
    if let Some((first, last)) = summary.span {
        fact(info_keys::FIRST_TICK, first.0.to_string());
        fact(info_keys::LAST_TICK, last.0.to_string());
    }
    fact("kernel_events", summary.kernel_events.to_string());
    fact("user_events", summary.user_events.to_string());
    fact(info_keys::WITNESS_AGREE, witnesses.agree.to_string());
    fact(info_keys::WITNESS_DISAGREE, witnesses.disagree.to_string());
    fact(info_keys::WITNESS_SINGLE, witnesses.single.to_string());
    fact("late_events", late.to_string());
    for source in sources {
        if !source.types.is_empty() {
            fact("source", source.path.display().to_string());
        }
        source.facts.iter().for_each(|(key, value)| fact(key, value.clone()));
    }
    for (key, value) in facts {
        table.row(|mut row| {
            row.text(&key).text(&value);
        })?;
    }
    table.finish()
}
