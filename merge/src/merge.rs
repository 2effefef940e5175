//! The merge itself: inputs in, a super-trace out.

use std::path::{Path, PathBuf};

use sigmund_model::{
    ClockDomain, Context, Event, Hertz, Level, Ticks,
    tables::{CLOCKS, CPUS, EVENT_TYPES, EVENTS, INFO, LOSSES},
};

use crate::{
    about::{self, write_clocks, write_cpus, write_event_types, write_info, write_losses},
    error::Error,
    kinds::{Kind, Kinds},
    machine::{Finished, Intervals, Machine, Placed},
    order::Ordered,
    source::{self, MainClock},
    summary::Summary,
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
    /// Correct CPUs whose time-stamp counters are not quite the same (large NUMA machines), by what LWPs did on two of
    /// them. The kernel trace is read once more for it. Nothing is changed where no order of events is violated; merges
    /// that would need it count LWPs that were put on a second CPU (losses, kind contradiction).
    pub align_cpus: bool,
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
    let clock = MainClock::choose(&mut sources, options)?;
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
        source.carriers.iter().for_each(|(lwp, pid, last)| machine.expect(*lwp, *pid, *last));
        source.losses.iter().filter(|loss| loss.from.is_some()).try_for_each(|loss| machine.missing(loss))?;
        losses.append(&mut source.losses);
        streams.extend(std::mem::take(&mut source.streams).into_iter().map(|stream| (index, stream)));
    }

    let mut ordered = Ordered::new(streams)?;
    let mut events = directory.table(&EVENTS)?;
    let mut summary = Summary { tick_hz: clock.tick_hz, ..Summary::default() };
    let mut take = |machine: &mut Machine, source: usize, event: &Event| {
        let kind = kinds.seen(source, event);
        kind.name_lwps(event, machine);
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
    loop {
        // A stream tells what is missing together with its next event: the machine must know before any other.
        ordered.take_gaps().iter().try_for_each(|gap| machine.missing(gap))?;
        if !ordered.next(|source, event| take(&mut machine, source, event))? {
            break;
        }
    }

    losses.append(&mut ordered.take_losses());
    losses.append(&mut about::uncounted_losses(&sources, &losses));
    about::judge(&mut losses);
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
    write_cpus(directory.table(&CPUS)?, &cpus, &summary.losses)?;
    write_event_types(directory.table(&EVENT_TYPES)?, &kinds)?;
    write_losses(directory.table(&LOSSES)?, &summary.losses)?;
    write_clocks(directory.table(&CLOCKS)?, &clock)?;
    write_info(directory.table(&INFO)?, &sources, &clock, &summary, witnesses, ordered.late)?;
    directory.finish()?;
    Ok(summary)
}

fn write_event(events: &mut TableWriter, kind: &Kind, event: &Event, placed: &Placed) -> Result<(), Error> {
    let texts = event.params.iter().rposition(|p| p.text.is_some()).map_or(0, |last| last + 1);
    events.row(|mut row| {
        row.count(event.tick.0).text(kind.level.name());
        row.maybe_int(kind.event_type.code.map(i64::from)).text(&kind.event_type.name);
        row.maybe_int(placed.cpu.map(|c| c.0.into())).maybe_int(placed.lwp.map(|l| l.0.into()));
        row.maybe_count(placed.thread.map(|t| t.0)).maybe_text(placed.context.map(Context::name));
        row.maybe_int(placed.target_lwp.map(|l| l.0.into())).maybe_count(placed.target_thread.map(|t| t.0));
        row.maybe_int(event.cpu.filter(|_| kind.level == Level::User).map(|c| c.0.into()));
        row.numbers(event.params.iter().map(|p| p.number));
        row.texts(event.params.iter().map(|p| p.text).take(texts));
    })
}
