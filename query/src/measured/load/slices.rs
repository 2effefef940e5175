//! Cuts a trace into slices, the latest first: reads the rows of each, makes a history of them, and adds it to a
//! measure.

use std::{collections::BTreeSet, sync::Arc};

use arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use sigmund_measures::{Gap, History, Interval, LastOnCpu, Names, Needs, Slice, Sliced, Slicer};
use sigmund_model::{
    LwpState,
    tables::{CPUS, EVENTS, INTERRUPTS, LOCKS, LWP_STATES, SPANS, SYSCALLS, THREAD_STATES, Table, WAKEUPS},
};
use sigmund_sql::{RowGroups, SuperTrace};

use super::{
    Window,
    actors::{self, Named},
    cells::{Small, read},
    creators, events, intervals,
    leaving::Leaving,
    marks,
    memory::Memory,
    reader::{Reader, TableReader, Wanted},
    selected::Selected,
    states,
    times::Times,
    waited::Waited,
};
use crate::{Error, Selector};

/// How large a slice may be.
#[derive(Clone, Copy, Debug)]
pub struct SliceSize {
    /// A slice ends once this many rows have been read for it.
    pub rows: usize,
    /// The longest duration of a slice.
    pub ticks: i64,
}

impl SliceSize {
    /// Everything in one slice.
    pub(in crate::measured) const WHOLE: SliceSize = SliceSize { rows: usize::MAX, ticks: i64::MAX };
}

impl Default for SliceSize {
    /// About 50 MB.
    fn default() -> SliceSize {
        SliceSize { rows: 1 << 19, ..SliceSize::WHOLE }
    }
}

/// What a question is about.
#[derive(Clone, Copy, Default)]
pub(in crate::measured) struct About<'a> {
    /// The name of a span, a function or a lock.
    pub(in crate::measured) subject: Option<&'a str>,
    /// FROM and TO.
    pub(in crate::measured) pair: Option<(&'a Selector, &'a Selector)>,
    /// The user threads, if it is about some, and not about LWPs.
    pub(in crate::measured) threads: Option<&'a BTreeSet<u64>>,
    /// The times that it is about, if it is only about some times in the window.
    pub(in crate::measured) times: Option<&'a [Interval]>,
}

/// What all slices share: the gaps, and the names of threads, LWPs and processes.
pub(in crate::measured) struct Known {
    gaps: Arc<Vec<Gap>>,
    names: Names,
}

impl Known {
    async fn read(trace: &SuperTrace, named: Named<'_>, extent: Interval) -> Result<Known, Error> {
        let mut names = Names::default();
        actors::names(trace, named, extent.to, &mut names).await?;
        Ok(Known { gaps: Arc::new(actors::gaps(trace, extent).await?), names })
    }
}

/// The tables of a trace that a measure needs.
pub(in crate::measured) struct Slices {
    slicer: Slicer,
    readers: Vec<Box<dyn Reader>>,
    on_cpu: OnCpu,
    /// Tables that were needed, and are not in this super-trace.
    pub(in crate::measured) left_out: Vec<&'static str>,
}

/// Whether the rows of the tables were sorted as slices require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::measured) enum Order {
    /// All rows were at their places.
    Kept,
    /// A row ends later than rows after it in the table. So a slice that was already made lacks it.
    Broken,
}

impl Slices {
    /// Begins to read the tables. `known` comes from an earlier reading for the same threads of the same trace.
    pub(in crate::measured) async fn open(
        trace: &SuperTrace,
        needs: Needs,
        window: Window,
        about: About<'_>,
        known: Option<Known>,
    ) -> Result<Slices, Error> {
        let About { subject, pair, threads, times } = about;
        let Window { of_rows, of_names, around, since } = window;
        let rows = || Wanted::since(of_rows, since);
        // A state without an end that began before `since` is that of an exited thread, and does not occur in an
        // answer.
        let of_states = Wanted { unended: false, ..rows() };
        // The last LWP on a CPU before a slice is searched for in the rows that were read. So there must be no holes in
        // them.
        let of_lwps = Wanted::since(of_rows, i64::MIN);
        let around = || Wanted::since(around, i64::MIN);
        let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) else {
            let slicer = Slicer::new(None, Arc::default(), Default::default());
            let (readers, on_cpu, left_out) = Default::default();
            return Ok(Slices { slicer, readers, on_cpu, left_out });
        };
        let extent = Interval::new(first.0 as i64, last.0 as i64);
        let mut left_out = Vec::new();
        let mut wants = |is_needed: bool, table: &'static Table| {
            let is_left_out = trace.info().left_out_tables().any(|name| name == table.name);
            if is_needed && is_left_out {
                left_out.push(table.name);
            }
            is_needed && !is_left_out
        };
        let mut readers = Vec::new();
        let last = extent.to;
        let mut of_names = Named { lives: of_names, only: None };
        let leaving = if needs.only_leaving { Leaving::read(trace, of_rows).await? } else { None };
        let hz = trace.tick_hz();
        let selected = Selected::read(trace, threads, needs, &of_states, (last, hz)).await?;
        let waited = match times {
            Some(times) => Some(Waited::of(times)),
            None if needs.only_waited => Waited::read(trace, threads, of_rows).await?,
            None => None,
        };
        // Whether it matters what ran on the CPUs.
        let needs_on_cpu = needs.on_cpu
            && selected.as_ref().is_none_or(Selected::has_stalls)
            && waited.as_ref().is_none_or(|waited| !waited.is_empty());
        if selected.as_ref().is_some_and(|selected| !selected.has_stalls()) {
            of_names.only = threads;
        }
        let of_waits = waited.as_ref().map(Waited::times);
        let on_lwps = selected.as_ref().map(Selected::on_lwps).or(of_waits.clone());
        let asleep = selected.as_ref().map(Selected::asleep).or(of_waits);
        let of_times = |times: &Option<Times>| match times {
            Some(times) => Wanted { times: times.clone(), only_times: true, ..rows() },
            None => rows(),
        };
        if let Some(selected) = selected {
            readers.extend(selected.readers(trace, needs, (of_states, of_lwps), last)?);
        } else if let Some(waited) = waited {
            readers.extend(waited.readers(trace, needs, (of_states, of_lwps), (last, hz))?);
        } else {
            if let Some(leaving) = leaving.filter(|_| needs.thread_states) {
                let decode = move |batch: &RecordBatch| states::leaving(batch, last, &leaving);
                let table = (&THREAD_STATES, states::OF_PLACES);
                readers.push(TableReader::open(trace, table, of_states, decode, Slicer::threads)?);
            } else if needs.thread_states && needs.only_unknown {
                let decode = move |batch: &RecordBatch| states::unknown(batch, last);
                let table = (&THREAD_STATES, states::OF_PLACES);
                readers.push(TableReader::open(trace, table, of_states, decode, Slicer::threads)?);
            } else if needs.thread_states {
                let decode = move |batch: &RecordBatch| states::of_threads(batch, (last, hz), |_, _, _| true);
                let table = (&THREAD_STATES, states::OF_THREADS);
                readers.push(TableReader::open(trace, table, of_states, decode, Slicer::threads)?);
            }
            if needs.lwp_states {
                let decode = move |batch: &RecordBatch| states::of_lwps(batch, last, |_, _| true);
                let table = (&LWP_STATES, states::OF_LWPS);
                readers.push(TableReader::open(trace, table, of_lwps, decode, Slicer::lwps)?);
            }
        }
        if needs.turns {
            let table = (&EVENTS, events::OF_TURNS);
            // Most rows are decoded only to be left out, so two row groups are decoded at the same time.
            readers.push(TableReader::open_ahead(trace, table, rows(), events::turns, Slicer::events, 2)?);
        }
        if wants(needs.wakeups, &WAKEUPS) {
            let table = (&WAKEUPS, intervals::OF_WAKEUPS);
            let rows = if needs.only_lives || needs.before_lives { rows() } else { around() };
            readers.push(TableReader::open(trace, table, rows, intervals::wakeups, Slicer::wakeups)?);
        }
        if wants(needs.interrupts, &INTERRUPTS) {
            let table = (&INTERRUPTS, intervals::OF_INTERRUPTS);
            readers.push(TableReader::open(
                trace,
                table,
                of_times(&on_lwps),
                intervals::interrupts,
                Slicer::interrupts,
            )?);
        }
        if wants(needs.syscalls, &SYSCALLS) {
            readers.push(if needs.only_asleep {
                let table = (&SYSCALLS, intervals::OF_CALLS_ASLEEP);
                TableReader::open(trace, table, of_times(&asleep), intervals::calls_asleep, Slicer::syscalls)?
            } else {
                let table = (&SYSCALLS, intervals::OF_SYSCALLS);
                TableReader::open(trace, table, of_times(&on_lwps), intervals::syscalls, Slicer::syscalls)?
            });
        }
        if wants(needs.spans, &SPANS) {
            let table = (&SPANS, intervals::OF_SPANS);
            let only = subject.filter(|_| needs.only_named).map(str::to_string);
            let decode = move |batch: &RecordBatch| intervals::spans(batch, only.as_deref());
            readers.push(TableReader::open(trace, table, rows(), decode, Slicer::spans)?);
        }
        if wants(needs.locks, &LOCKS) {
            let table = (&LOCKS, intervals::OF_LOCKS);
            let decode = move |batch: &RecordBatch| intervals::locks(batch, needs.only_waits);
            readers.push(TableReader::open(trace, table, around(), decode, Slicer::locks)?);
        }
        if let Some(pair) = pair.filter(|_| needs.marks) {
            readers.push(marks::reader(trace, pair, rows()).await?);
        }
        let Known { gaps, mut names } = match known {
            Some(known) => known,
            None => Known::read(trace, of_names, extent).await?,
        };
        if needs.creators && names.creators.is_none() {
            names.creators = Some(creators::read(trace, &names).await?);
        }
        let mut slicer = Slicer::new(Some(extent), gaps, names);
        let window = (of_rows != Interval::ALL).then_some(of_rows);
        let words = Default::default();
        if needs.faults {
            slicer.faults(events::faults(trace, window).await?, &words);
        }
        if !needs_on_cpu {
            slicer.without_on_cpu();
        }
        if !needs.mounted {
            slicer.without_mounted();
        }
        let is_left_out = left_out.contains(&INTERRUPTS.name);
        if needs.interrupts
            && (is_left_out || trace.row_groups(&INTERRUPTS, intervals::OF_INTERRUPTS)?.is_empty())
        {
            slicer.without_interrupts();
        }
        let on_cpu =
            if needs_on_cpu && needs.lwp_states { OnCpu::open(trace, last).await? } else { OnCpu::default() };
        Ok(Slices { slicer, readers, on_cpu, left_out })
    }

    /// The part that another reading of the same trace need not read again.
    pub(in crate::measured) fn into_known(self) -> Known {
        let (gaps, names) = self.slicer.into_known();
        Known { gaps, names }
    }

    /// Everything as one history.
    pub(in crate::measured) async fn whole(mut self, memory: Memory<'_>) -> Result<History, Error> {
        for reader in &mut self.readers {
            while reader.latest() >= Some(reader.window().from) {
                reader.advance(&mut self.slicer, i64::MAX).await?;
                memory.check()?;
            }
        }
        Ok(self.slicer.into_history())
    }

    /// What is the same in all slices.
    pub(in crate::measured) fn shared(&self) -> &History {
        self.slicer.shared()
    }

    /// The earliest tick where a slice that ends at `to` may begin. The time before and after the trace is not divided.
    fn shortest(&self, to: i64, size: SliceSize) -> i64 {
        let Some(extent) = self.slicer.shared().extent else { return i64::MIN };
        let from = extent.to.saturating_add(1).min(to).saturating_sub(size.ticks);
        if from > extent.from { from } else { i64::MIN }
    }

    /// Adds the slices of `part` to a measure, the latest first. If the part is before the window, it stops when the
    /// measure no longer looks back. While one slice is added, the next is read and made.
    pub(in crate::measured) async fn each(
        &mut self,
        part: Interval,
        window: Interval,
        (size, memory): (SliceSize, Memory<'_>),
        measure: Box<dyn Sliced>,
    ) -> Result<(Box<dyn Sliced>, Order), Stopped> {
        let size = memory.slices(size);
        let mut adding = Adding::Done(measure);
        let mut to = part.to;
        loop {
            let Some(from) = self.read((part, to), window, (size, memory)).await? else {
                return Ok((adding.done().await?, Order::Broken));
            };
            let slice = Slice { interval: Interval { from, to }, window };
            let history = self.slicer.slice(slice);
            let mut measure = adding.done().await?;
            memory.make_room(&mut *measure)?;
            memory.check()?;
            let is_enough = slice.is_before_window() && !measure.looks_back();
            if is_enough {
                return Ok((measure, Order::Kept));
            }
            adding = Adding::begin(measure, history, slice);
            if from <= part.from {
                let mut measure = adding.done().await?;
                memory.make_room(&mut *measure)?;
                memory.check()?;
                return Ok((measure, Order::Kept));
            }
            to = from;
        }
    }

    /// Reads the rows that the slice ending at `to` needs, and returns where the slice begins. `None` if the rows are
    /// not sorted as slices require.
    async fn read(
        &mut self,
        (part, to): (Interval, i64),
        window: Interval,
        (size, memory): (SliceSize, Memory<'_>),
    ) -> Result<Option<i64>, Error> {
        let mut read = 0;
        let from = loop {
            let next = self.readers.iter_mut().filter(|reader| reader.latest() >= Some(part.from));
            let Some(next) = next.max_by_key(|reader| reader.latest()) else { break part.from };
            let latest = next.latest().unwrap_or(i64::MAX);
            if read >= size.rows && latest.saturating_add(1) < to {
                break latest.saturating_add(1).max(part.from);
            }
            let (count, is_late) = next.advance(&mut self.slicer, to).await?;
            memory.check()?;
            if is_late && to < window.to {
                return Ok(None);
            }
            read += count;
        };
        let from = from.max(self.shortest(to, size)).min(to.saturating_sub(1));
        self.on_cpu.look_up(&mut self.slicer, from).await?;
        Ok(Some(from))
    }
}

/// Why a measure was stopped before it had all slices.
pub(in crate::measured) enum Stopped {
    /// It refuses the request.
    Refused(String),
    /// The trace cannot be read.
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Failed(error)
    }
}

/// A measure to which a slice is being added by another thread.
enum Adding {
    Done(Box<dyn Sliced>),
    Running(SpawnedTask<Result<Box<dyn Sliced>, String>>),
}

impl Adding {
    fn begin(mut measure: Box<dyn Sliced>, history: History, slice: Slice) -> Adding {
        Adding::Running(SpawnedTask::spawn_blocking(move || {
            measure.add(&history, slice)?;
            Ok(measure)
        }))
    }

    async fn done(self) -> Result<Box<dyn Sliced>, Stopped> {
        match self {
            Adding::Done(measure) => Ok(measure),
            Adding::Running(task) => task.join().await.map_err(Error::of_task)?.map_err(Stopped::Refused),
        }
    }
}

/// Looks up which LWP was on each CPU last before a slice, if the rows that were read do not show it.
#[derive(Default)]
struct OnCpu {
    cpus: Vec<u32>,
    states: Option<Arc<RowGroups>>,
    last: i64,
}

impl OnCpu {
    async fn open(trace: &SuperTrace, last: i64) -> Result<OnCpu, Error> {
        let mut cpus = Vec::new();
        read(trace, &CPUS, &["cpu"], |batch| {
            cpus.extend((0..batch.num_rows()).filter_map(|row| Small::of(batch, 0).get(row)));
        })
        .await?;
        let states = trace.row_groups(&LWP_STATES, states::OF_LWPS)?;
        Ok(OnCpu { cpus, states: Some(Arc::new(states)), last })
    }

    async fn look_up(&self, slicer: &mut Slicer, before: i64) -> Result<(), Error> {
        let Some(states) = self.states.as_ref().filter(|_| before > i64::MIN) else { return Ok(()) };
        let mut unknown = slicer.unknown_cpus(before, &self.cpus);
        for group in (0..states.len()).rev() {
            if unknown.is_empty() {
                break;
            }
            let may_have =
                |(first, last): (i64, i64)| unknown.iter().any(|cpu| (first..=last).contains(&(*cpu).into()));
            let is_after = states.bounds(group, "ts_tick").is_some_and(|(first, _)| first > before);
            if is_after || !states.bounds(group, "cpu").is_none_or(may_have) {
                continue;
            }
            let (groups, last) = (Arc::clone(states), self.last);
            let rows = move || Ok(states::of_lwps(&groups.read(group)?, last, |_, _| true).rows);
            let rows: Result<Result<Vec<_>, sigmund_sql::Error>, _> =
                SpawnedTask::spawn_blocking(rows).join().await;
            for (lwp, interval, stay) in rows.map_err(Error::of_task)??.into_iter().rev() {
                let Some(cpu) = stay.cpu.filter(|_| stay.state == LwpState::Running) else { continue };
                if interval.to < before
                    && let Some(place) = unknown.iter().position(|unknown| *unknown == cpu)
                {
                    unknown.swap_remove(place);
                    slicer.set_last_on_cpu(cpu, Some(LastOnCpu::of(lwp, interval, &stay)));
                }
            }
        }
        unknown.into_iter().for_each(|cpu| slicer.set_last_on_cpu(cpu, None));
        Ok(())
    }
}
