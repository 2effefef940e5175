//! The events of one CPU of a perf.data, in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use sigmund_model::{ClockFit, Cpu, Event, EventStream, Loss, LossKind, Nanos, Severity, Ticks};

use super::decode::RecordDecoder;
use super::index::CpuIndex;
use super::layout::{PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES};
use super::order::Lateness;
use super::record::{Attrs, Record, Stamp};
use super::record_cursor::{RecordCursor, RecordRange};
use super::shared::Subscriber;
use crate::losses::kernel_loss;

/// Largest number of events held back: some 30 MB. Beyond it the oldest is returned; a later event that is even older
/// gets its time and is counted.
const MOST_HELD: usize = 1 << 17;

/// Reads the events of one CPU.
#[derive(Debug)]
pub struct PerfStream {
    decoder: Arc<RecordDecoder>,
    /// Of the file, for messages.
    name: String,
    cpu: Option<Cpu>,
    source: RecordSource,
    /// As measured by the first pass.
    measured: Lateness,
    /// The same, as far as this stream has been read.
    seen: Lateness,
    delayed: DelayedEvents,
    fit: Option<ClockFit>,
    last: Ticks,
    /// Time of the previous record in the order of the file.
    before: Option<u64>,
    events: u64,
    corrected: u64,
    losses: Vec<Loss>,
}

/// The source of the records.
#[derive(Debug)]
pub(super) enum RecordSource {
    Ranges(Ranges),
    SharedPass(Subscriber),
}

/// Records of a file that is not compressed.
#[derive(Debug)]
pub(super) struct Ranges {
    record_range: RecordRange,
    /// Ranges of the file that hold this CPU's records, among others.
    ranges: Arc<[(u64, u64)]>,
    next_range: usize,
    range_end: u64,
    cursor: Option<RecordCursor>,
}

/// Events that are held back until all older ones have been read.
#[derive(Debug, Default)]
struct DelayedEvents {
    /// Time, position in the file, and index in `events`.
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Event>,
    free: Vec<usize>,
    next_place: u64,
}

impl PerfStream {
    pub(super) fn new(
        source: RecordSource,
        name: String,
        decoder: Arc<RecordDecoder>,
        of_cpu: &CpuIndex,
        fit: Option<ClockFit>,
    ) -> PerfStream {
        PerfStream {
            decoder,
            name,
            cpu: of_cpu.cpu,
            source,
            measured: of_cpu.lateness,
            seen: Lateness::default(),
            delayed: DelayedEvents::default(),
            fit,
            last: Ticks(0),
            before: None,
            events: 0,
            corrected: 0,
            losses: Vec::new(),
        }
    }

    /// The CPU of these events; `None` if records do not have it.
    pub fn cpu(&self) -> Option<Cpu> {
        self.cpu
    }

    /// Events read so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The next event in the order of the file; `None` at the end.
    #[inline]
    fn next_in_file(&mut self, event: &mut Event) -> Option<u64> {
        loop {
            let Some((record, stamp)) = self.source.next(&self.decoder.attrs) else {
                self.before = None;
                return None;
            };
            if stamp.cpu != self.cpu || stamp.time == 0 {
                continue;
            }
            if self.measured.unsorted {
                self.seen.see(stamp.time);
            }
            if self.decoder.is_event(record.ty) {
                self.decoder.fill(&record, &stamp, event);
                self.before = Some(stamp.time);
                return Some(stamp.time);
            }
            if let Some(loss) = lost(&record, &stamp, self.before) {
                self.losses.push(self.in_ticks(loss));
            }
        }
    }

    /// The next event in time order.
    fn next_in_time(&mut self, event: &mut Event) -> bool {
        loop {
            let reached = self.seen.newest().saturating_sub(self.measured.late);
            if self.delayed.pop(event, reached) {
                return true;
            }
            match self.next_in_file(event) {
                Some(time) => self.delayed.push(event, time),
                None => return self.delayed.pop(event, u64::MAX),
            }
        }
    }

    fn tick(&self, time: u64) -> Ticks {
        self.fit.map_or(Ticks(time), |fit| fit.to_tick(Nanos(time)))
    }

    fn in_ticks(&self, loss: Loss) -> Loss {
        let tick = |time: Option<Ticks>| time.map(|time| self.tick(time.0));
        Loss { from: tick(loss.from), to: tick(loss.to), ..loss }
    }
}

/// ```text
///   LOST           u64 id | u64 number of records     the ring was full
///   LOST_SAMPLES   u64 number of samples              the hardware's buffer was
/// ```
#[cold]
fn lost(record: &Record<'_>, stamp: &Stamp, before: Option<u64>) -> Option<Loss> {
    let (what, at) = match record.ty {
        PERF_RECORD_LOST => ("records lost in the kernel's buffer", 8),
        PERF_RECORD_LOST_SAMPLES => ("samples lost by the hardware", 0),
        _ => return None,
    };
    let count = record.u64_at(at);
    let of_cpu = stamp.cpu.map(|cpu| format!(" of cpu {cpu}")).unwrap_or_default();
    let detail = match count {
        Some(count) => format!("{count} {what}{of_cpu}"),
        None => format!("{what}{of_cpu}, not counted"),
    };
    let mut loss = Loss {
        from: before.map(Ticks),
        count,
        advice: "record with a larger kernel buffer, or fewer kernel events",
        ..kernel_loss(LossKind::Dropped, Severity::Gap, stamp.cpu, detail)
    };
    loss.end_at(Some(Ticks(stamp.time)));
    Some(loss)
}

impl RecordSource {
    #[inline]
    fn next(&mut self, attrs: &Attrs) -> Option<(Record<'_>, Stamp)> {
        match self {
            RecordSource::Ranges(ranges) => ranges.next(attrs),
            RecordSource::SharedPass(subscriber) => subscriber.next(attrs),
        }
    }
}

impl Ranges {
    /// The records of a CPU, by its index.
    pub(super) fn new(record_range: &RecordRange, of_cpu: &CpuIndex) -> Ranges {
        let ranges = Arc::clone(&of_cpu.ranges);
        Ranges { record_range: record_range.clone(), ranges, next_range: 0, range_end: 0, cursor: None }
    }

    #[inline]
    fn next(&mut self, attrs: &Attrs) -> Option<(Record<'_>, Stamp)> {
        let stamp = loop {
            if let Some(stamp) = self.cursor.as_mut().and_then(|cursor| cursor.advance_to_stamped(attrs)) {
                break stamp;
            }
            let damaged_at =
                self.cursor.as_ref().and_then(RecordCursor::damage).map(|parse_error| parse_error.at);
            let resumed =
                damaged_at.and_then(|at| self.record_range.resume(at)).filter(|at| *at < self.range_end);
            let (from, to) = match resumed {
                Some(at) => (at, self.range_end),
                None => {
                    let range = *self.ranges.get(self.next_range)?;
                    self.next_range += 1;
                    range
                }
            };
            self.range_end = to;
            self.cursor = Some(self.record_range.cursor_over(from, to));
        };
        self.cursor.as_ref().and_then(RecordCursor::record).map(|record| (record, stamp))
    }
}

impl DelayedEvents {
    /// Stores the content of `event`, and leaves a value there that may be overwritten.
    fn push(&mut self, event: &mut Event, time: u64) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.events.push(Event::default());
            self.events.len() - 1
        });
        std::mem::swap(event, &mut self.events[at]);
        self.heap.push(Reverse((time, self.next_place, at)));
        self.next_place += 1;
    }

    /// Takes the oldest event, if its time has been reached.
    fn pop(&mut self, event: &mut Event, reached: u64) -> bool {
        let Some(Reverse((time, _, at))) = self.heap.peek().copied() else { return false };
        if time > reached && self.heap.len() < MOST_HELD {
            return false;
        }
        self.heap.pop();
        std::mem::swap(event, &mut self.events[at]);
        self.free.push(at);
        true
    }
}

impl EventStream for PerfStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let found = match self.measured.unsorted {
            false => self.next_in_file(event).is_some(),
            true => self.next_in_time(event),
        };
        if !found {
            return Ok(false);
        }
        let tick = self.tick(event.tick.0);
        if tick < self.last {
            self.corrected += 1;
        }
        self.last = self.last.max(tick);
        self.events += 1;
        event.tick = self.last;
        Ok(true)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let count = std::mem::take(&mut self.corrected);
        if count > 0 {
            let detail = match self.cpu {
                Some(cpu) => format!("{}: cpu {cpu}", self.name),
                None => self.name.clone(),
            };
            let detail =
                format!("{detail}: {count} records were earlier than the previous record; they got its time");
            let loss = kernel_loss(LossKind::Contradiction, Severity::Note, self.cpu, detail);
            self.losses.push(Loss { count: Some(count), ..loss });
        }
        std::mem::take(&mut self.losses)
    }
}
