//! The first pass: finds the records of each CPU, the facts outside of events, and the losses.
//!
//! An index has ranges of the file for each CPU. A range begins and ends with a record of that CPU, and may contain a
//! few records of other CPUs, which streams skip. This bounds the size of the index ([`MOST_RANGES`] for each CPU) for
//! any file.

use std::collections::HashMap;
use std::sync::Arc;

use sigmund_model::{Cpu, Loss, LossKind, Lwp, Severity};

use super::described::{Described, TimeConv};
use super::layout::{
    PERF_RECORD_EVENT_UPDATE, PERF_RECORD_FINISHED_INIT, PERF_RECORD_FINISHED_ROUND, PERF_RECORD_HEADER_ATTR,
    PERF_RECORD_HEADER_FEATURE, PERF_RECORD_HEADER_TRACING_DATA, PERF_RECORD_ID_INDEX, PERF_RECORD_LOST,
    PERF_RECORD_LOST_SAMPLES, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_TIME_CONV, feature,
};
use super::order::Lateness;
use super::record::{Attrs, Record, Stamp};
use super::record_cursor::RecordRange;
use crate::error::ParseError;
use crate::losses::kernel_loss;

/// Ranges of a CPU beyond this number are joined: 1 MiB of index.
const MOST_RANGES: usize = 1 << 16;
/// Ranges closer to each other than this are joined: two or three records of another CPU.
const FIRST_GAP: u64 = 256;
/// Damaged places that get a row each; the others are counted.
const MOST_ROWS: usize = 64;

/// perf's own records without information on events: BUILD_ID, THREAD_MAP, CPU_MAP, and others for other readers.
const WITHOUT_EVENTS: [u32; 8] = [
    PERF_RECORD_HEADER_ATTR,
    PERF_RECORD_EVENT_UPDATE,
    PERF_RECORD_HEADER_FEATURE,
    PERF_RECORD_FINISHED_ROUND,
    PERF_RECORD_FINISHED_INIT,
    67,
    73,
    74,
];

/// The positions of one CPU's records.
#[derive(Clone, Debug)]
pub(super) struct CpuIndex {
    /// `None` for records without a CPU.
    pub(super) cpu: Option<Cpu>,
    /// In the order of the file; not used if records were compressed.
    pub(super) ranges: Arc<[(u64, u64)]>,
    found: Vec<(u64, u64)>,
    pub(super) lateness: Lateness,
    /// Number of records lost according to LOST records.
    lost: u64,
    gap: u64,
}

/// The result of the first pass over one file.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) cpus: Vec<CpuIndex>,
    /// Index in `cpus`, by CPU + 1; 0 is for records without a CPU.
    by_cpu: Vec<Option<u16>>,
    /// Whether records were compressed.
    pub(super) packed: bool,
    /// First and last time.
    pub(super) span: Option<(u64, u64)>,
    /// Whether switches of whole CPUs were seen.
    pub(super) whole_cpus: bool,
}

/// What the files of one recording contain together.
#[derive(Debug, Default)]
pub(super) struct RecordingFacts {
    pub(super) lwp_names: Vec<(Lwp, String)>,
    name_of: HashMap<Lwp, usize>,
    /// Lost events as perf read them from the events' counters at the end, by id.
    lost_at_end: Vec<(u64, u64)>,
    cpu_of_id: HashMap<u64, Cpu>,
    /// The number of records of each kind that does not become an event.
    unread: HashMap<u32, u64>,
    without_stamp: u64,
    pub(super) time_conv: Option<TimeConv>,
    pub(super) losses: Vec<Loss>,
    more_damage: u64,
}

/// The attributes: known from the start for a file, from records before all others for a pipe.
pub(super) enum AttrSource<'a> {
    File(&'a Attrs),
    Pipe(&'a mut Described, &'a mut Option<Attrs>),
}

impl AttrSource<'_> {
    /// The attributes at the first record of the kernel; later descriptions are ignored.
    fn attrs(&mut self) -> Result<&Attrs, &'static str> {
        match self {
            AttrSource::File(attrs) => Ok(attrs),
            AttrSource::Pipe(described, attrs) => {
                if attrs.is_none() {
                    **attrs = Some(Attrs::new(described.attrs.clone())?);
                }
                attrs.as_ref().ok_or("no attribute")
            }
        }
    }
}

impl Index {
    /// Reads all records of a file once. `Err` if they cannot be attributed to events.
    pub(super) fn read(
        record_range: &RecordRange,
        source: &mut AttrSource<'_>,
        recording_facts: &mut RecordingFacts,
    ) -> Result<Index, &'static str> {
        let mut index = Index::default();
        let mut cursor = record_range.cursor();
        loop {
            while cursor.advance() {
                if let Some(record) = cursor.record() {
                    let place = cursor.place();
                    index.packed |= place.is_none();
                    index.record(&record, place, source, recording_facts)?;
                }
            }
            let Some(parse_error) = cursor.damage() else { break };
            recording_facts.damage(record_range, parse_error);
            let Some(at) = record_range.resume(parse_error.at).filter(|_| !index.packed) else { break };
            cursor = record_range.cursor_over(at, record_range.to);
        }
        index.cpus.sort_by_key(|of_cpu| of_cpu.cpu);
        for of_cpu in &mut index.cpus {
            of_cpu.ranges = Arc::from(std::mem::take(&mut of_cpu.found));
        }
        Ok(index)
    }

    #[inline]
    fn record(
        &mut self,
        record: &Record<'_>,
        place: Option<(u64, u64)>,
        source: &mut AttrSource<'_>,
        recording_facts: &mut RecordingFacts,
    ) -> Result<(), &'static str> {
        if !record.is_of_the_kernel() {
            recording_facts.record(record, source);
            return Ok(());
        }
        if let Some((lwp, name)) = record.comm() {
            recording_facts.name(lwp, name);
        }
        let attrs = source.attrs()?;
        let Some(stamp) = attrs.stamp(record) else {
            recording_facts.without_stamp += 1;
            return Ok(());
        };
        // Written by perf itself: before the recording a name without an event; at its end the number of lost events.
        if stamp.time == 0 {
            if record.ty == PERF_RECORD_LOST_SAMPLES {
                recording_facts.lost_at_end(record, attrs);
            }
            return Ok(());
        }
        self.whole_cpus |= record.ty == PERF_RECORD_SWITCH_CPU_WIDE;
        if !record.is_read() {
            *recording_facts.unread.entry(record.ty).or_default() += 1;
            return Ok(());
        }
        let of_cpu = self.of_cpu(&stamp);
        of_cpu.lateness.see(stamp.time);
        if record.ty == PERF_RECORD_LOST {
            of_cpu.lost = of_cpu.lost.saturating_add(record.u64_at(8).unwrap_or(0));
        }
        if let Some(place) = place {
            of_cpu.add(place);
        }
        let (first, last) = self.span.unwrap_or((stamp.time, stamp.time));
        self.span = Some((first.min(stamp.time), last.max(stamp.time)));
        Ok(())
    }

    #[inline]
    fn of_cpu(&mut self, stamp: &Stamp) -> &mut CpuIndex {
        let place = stamp.cpu.map_or(0, |cpu| cpu.0 as usize + 1);
        if self.by_cpu.len() <= place {
            self.by_cpu.resize(place + 1, None);
        }
        let at = *self.by_cpu[place].get_or_insert_with(|| {
            self.cpus.push(CpuIndex {
                cpu: stamp.cpu,
                ranges: Arc::default(),
                found: Vec::new(),
                lateness: Lateness::default(),
                lost: 0,
                gap: FIRST_GAP,
            });
            self.cpus.len() as u16 - 1
        });
        &mut self.cpus[usize::from(at)]
    }
}

impl CpuIndex {
    #[inline]
    fn add(&mut self, (from, to): (u64, u64)) {
        match self.found.last_mut() {
            Some((_, end)) if from - *end <= self.gap => *end = to,
            _ => self.found.push((from, to)),
        }
        if self.found.len() > MOST_RANGES {
            self.join();
        }
    }

    /// Halves the number of ranges, or reduces it further.
    fn join(&mut self) {
        while self.found.len() > MOST_RANGES / 2 && self.gap < u64::MAX / 2 {
            self.gap *= 4;
            let gap = self.gap;
            self.found.dedup_by(|next, range| {
                let near = next.0.saturating_sub(range.1) <= gap;
                range.1 = if near { next.1 } else { range.1 };
                near
            });
        }
    }
}

impl RecordingFacts {
    fn name(&mut self, lwp: Lwp, name: String) {
        match self.name_of.get(&lwp) {
            Some(at) => self.lwp_names[*at].1 = name,
            None => {
                self.name_of.insert(lwp, self.lwp_names.len());
                self.lwp_names.push((lwp, name));
            }
        }
    }

    /// Reads one of perf's own records.
    #[cold]
    fn record(&mut self, record: &Record<'_>, source: &mut AttrSource<'_>) {
        match (record.ty, source) {
            (PERF_RECORD_ID_INDEX, _) => self.id_index(record),
            (PERF_RECORD_TIME_CONV, _) => self.time_conv = TimeConv::parse(record).or(self.time_conv),
            (PERF_RECORD_HEADER_ATTR, AttrSource::Pipe(described, attrs)) if attrs.is_none() => {
                if described.attr_record(record).is_none() {
                    described
                        .unreadable
                        .push(("attribute", format!("a record of {} bytes", record.body.len())));
                }
            }
            (PERF_RECORD_EVENT_UPDATE, AttrSource::Pipe(described, _)) => described.event_update(record),
            (PERF_RECORD_HEADER_FEATURE, AttrSource::Pipe(described, _)) => {
                // u64 feature | bytes
                let bit = record.u64_at(0).and_then(|bit| u32::try_from(bit).ok());
                if let (Some(bit), Some(bytes)) = (bit, record.body.get(8..)) {
                    described.feature(bit, bytes, record.order);
                }
            }
            (PERF_RECORD_HEADER_TRACING_DATA, AttrSource::Pipe(described, _)) => {
                // u32 size | 0 | bytes
                let size = record.u32_at(0).map_or(0, |size| size as usize);
                let at = record.body.len().saturating_sub(size);
                let bytes = record.body.get(at..).unwrap_or_default();
                described.feature(feature::TRACING_DATA, bytes, record.order);
            }
            (ty, _) if WITHOUT_EVENTS.contains(&ty) => {}
            (ty, _) => *self.unread.entry(ty).or_default() += 1,
        }
    }

    /// ID_INDEX: `u64 n`, n × {u64 id, u64 index, u64 cpu, u64 tid}.
    fn id_index(&mut self, record: &Record<'_>) {
        let words = record.body.get(8..).unwrap_or_default().as_chunks::<32>().0;
        for entry in words {
            let word = |at: usize| record.order.u64_at(entry, at);
            if let (Some(id), Some(cpu)) = (word(0), word(16).and_then(|cpu| u32::try_from(cpu).ok())) {
                self.cpu_of_id.insert(id, Cpu(cpu));
            }
        }
    }

    /// LOST_SAMPLES written by perf itself: `u64 n | … | id`. The count is for one event on one CPU, over the whole
    /// recording.
    fn lost_at_end(&mut self, record: &Record<'_>, attrs: &Attrs) {
        let id = attrs.trailing_id(record).unwrap_or(0);
        if let Some(count @ 1..) = record.u64_at(0) {
            self.lost_at_end.push((id, count));
        }
    }

    fn damage(&mut self, record_range: &RecordRange, parse_error: &ParseError) {
        if self.losses.len() >= MOST_ROWS {
            self.more_damage += 1;
            return;
        }
        let reaches_end = parse_error.found.ends_with("bytes") || parse_error.found.ends_with("bytes of it");
        let cut_off = reaches_end && record_range.to >= record_range.input.len();
        let kind = if cut_off { LossKind::Truncated } else { LossKind::Damaged };
        let detail = format!("{}: {parse_error}", record_range.input.name());
        self.losses.push(kernel_loss(kind, Severity::Gap, None, detail));
    }

    /// Adds rows for what was counted over the whole recording; `indices` are those of its files.
    pub(super) fn finish<'a>(&mut self, name: &str, indices: impl Iterator<Item = &'a Index>) {
        let mut row = |kind, severity, count: u64, what: String| {
            if count > 0 {
                let loss = kernel_loss(kind, severity, None, format!("{name}: {what}"));
                self.losses.push(Loss { count: Some(count), ..loss });
            }
        };
        row(LossKind::Damaged, Severity::Gap, self.more_damage, "more damaged places".to_owned());
        let count = self.without_stamp;
        let what = format!("{count} records of unknown events, or without a time");
        row(LossKind::Damaged, Severity::Gap, count, what);
        let mut kinds: Vec<(u32, u64)> = self.unread.drain().collect();
        kinds.sort_unstable();
        let count = kinds.iter().map(|(_, count)| count).sum();
        let names: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{count} of kind {kind}")).collect();
        row(LossKind::NotRecorded, Severity::Note, count, format!("records not read: {}", names.join(", ")));
        self.lost_without_records(name, indices);
    }

    /// A LOST record is written as soon as there is room again after a loss. The events' counters at the end have the
    /// sum, including losses after the last such record: the difference becomes a row without an instant.
    fn lost_without_records<'a>(&mut self, name: &str, indices: impl Iterator<Item = &'a Index>) {
        let mut by_cpu: HashMap<Option<Cpu>, u64> = HashMap::new();
        for (id, count) in self.lost_at_end.drain(..) {
            let sum = by_cpu.entry(self.cpu_of_id.get(&id).copied()).or_default();
            *sum = sum.saturating_add(count);
        }
        let mut by_cpu: Vec<(Option<Cpu>, u64)> = by_cpu.into_iter().collect();
        by_cpu.sort_unstable();
        let mut reported: HashMap<Option<Cpu>, u64> = HashMap::new();
        for of_cpu in indices.flat_map(|index| &index.cpus) {
            let sum = reported.entry(of_cpu.cpu).or_default();
            *sum = sum.saturating_add(of_cpu.lost);
        }
        for (cpu, count) in by_cpu {
            if let Some(count @ 1..) = count.checked_sub(reported.get(&cpu).copied().unwrap_or(0)) {
                let detail = format!("{name}: {count} records lost without a LOST record");
                let loss = kernel_loss(LossKind::Dropped, Severity::Gap, cpu, detail);
                let advice = "record with a larger kernel buffer, or fewer kernel events";
                self.losses.push(Loss { count: Some(count), advice, ..loss });
            }
        }
    }
}
