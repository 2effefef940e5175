//! A summary of one trace of any format: the facts in its header, and counts of its events.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use fkt_ingest::TraceStream;
use sigmund_model::{
    ClockDomain, ClockFit, Cpu, Event, EventType, Hertz, Level, Loss, LossKind, Lwp, Snapshot, Ticks,
};

/// The summary of one trace.
pub(crate) struct TraceSummary {
    pub(crate) path: PathBuf,
    /// `trace.dat version 7`
    pub(crate) format: String,
    /// Facts from its header: writer, host, kernel, …
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) tick_hz: Option<Hertz>,
    pub(crate) snapshots: Vec<(ClockDomain, Snapshot)>,
    pub(crate) streams: Vec<StreamSummary>,
    pub(crate) types: Vec<EventType>,
    /// The number of events of each type; all 0 if they were not counted.
    pub(crate) events_of_type: Vec<u64>,
    /// Names and events of LWPs.
    pub(crate) lwps: BTreeMap<Lwp, LwpSummary>,
    pub(crate) losses: BTreeMap<(&'static str, &'static str), LossSummary>,
    /// Whether the events were read and counted.
    pub(crate) counted: bool,
}

/// The summary of one stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamSummary {
    pub(crate) buffer: String,
    pub(crate) cpu: Option<Cpu>,
    pub(crate) lwp: Option<Lwp>,
    pub(crate) clock: ClockDomain,
    /// `None` if not counted.
    pub(crate) events: Option<u64>,
    pub(crate) first: Option<Ticks>,
    pub(crate) last: Option<Ticks>,
    /// Events lost, as far as they were counted.
    pub(crate) lost: u64,
}

impl StreamSummary {
    /// A stream of which only the header was read.
    pub(crate) fn of(stream: &TraceStream) -> StreamSummary {
        StreamSummary {
            buffer: stream.buffer.clone(),
            cpu: stream.cpu,
            lwp: None,
            clock: stream.clock,
            events: None,
            first: None,
            last: None,
            lost: 0,
        }
    }
}

/// The summary of one LWP.
#[derive(Clone, Debug, Default)]
pub(crate) struct LwpSummary {
    pub(crate) name: Option<String>,
    pub(crate) events: u64,
}

/// Losses of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossSummary {
    pub(crate) losses: u64,
    pub(crate) events: Option<u64>,
    pub(crate) example: String,
}

impl TraceSummary {
    pub(crate) fn new(path: &Path, format: String, types: Vec<EventType>) -> TraceSummary {
        TraceSummary {
            path: path.to_path_buf(),
            format,
            facts: Vec::new(),
            tick_hz: None,
            snapshots: Vec::new(),
            streams: Vec::new(),
            events_of_type: vec![0; types.len()],
            types,
            lwps: BTreeMap::new(),
            losses: BTreeMap::new(),
            counted: false,
        }
    }

    pub(crate) fn name_lwp(&mut self, lwp: Lwp, name: &str) {
        self.lwps.entry(lwp).or_default().name = Some(name.to_string());
    }

    /// Counts a loss. The first of each kind is kept as an example.
    pub(crate) fn lose(&mut self, loss: &Loss) {
        let kind = self.losses.entry((loss.kind.name(), loss.level.name())).or_default();
        if kind.losses == 0 {
            kind.example.clone_from(&loss.detail);
        }
        kind.losses += 1;
        kind.events = kind.events.into_iter().chain(loss.count).reduce(u64::saturating_add);
    }

    /// Reads every stream to its end. Calls `progress` from time to time with the number of events so far.
    pub(crate) fn count(&mut self, streams: Vec<TraceStream>, mut progress: impl FnMut(u64)) {
        let mut event = Event::default();
        let mut total = 0;
        for (place, mut stream) in streams.into_iter().enumerate() {
            let mut held = self.streams.get(place).cloned().unwrap_or_else(|| StreamSummary::of(&stream));
            let (mut events, mut span) = (0, None);
            loop {
                match stream.events.next_into(&mut event) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        let detail = format!("{}: {error}", self.path.display());
                        self.lose(&Loss::new(LossKind::Truncated, self.level(), detail));
                        break;
                    }
                }
                events += 1;
                total += 1;
                let (first, last) = span.unwrap_or((event.tick, event.tick));
                span = Some((event.tick.min(first), event.tick.max(last)));
                self.count_one(&event);
                if total % (1 << 16) == 0 {
                    progress(total);
                    self.take_losses(&mut stream, &mut held);
                }
            }
            self.take_losses(&mut stream, &mut held);
            held.events = Some(events);
            (held.first, held.last) = span.unzip();
            match self.streams.get_mut(place) {
                Some(known) => *known = held,
                None => self.streams.push(held),
            }
        }
        self.counted = true;
    }

    fn count_one(&mut self, event: &Event) {
        if let Some(count) = self.events_of_type.get_mut(event.kind as usize) {
            *count += 1;
        }
        if let Some(lwp) = event.lwp {
            self.lwps.entry(lwp).or_default().events += 1;
        }
    }

    fn take_losses(&mut self, stream: &mut TraceStream, held: &mut StreamSummary) {
        for loss in stream.events.take_losses() {
            // For an LWP, the header of its last packet already has the number of lost events.
            if held.lwp.is_none() {
                held.lost = held.lost.saturating_add(loss.count.unwrap_or(0));
            }
            self.lose(&loss);
        }
    }

    /// The side that recorded the trace.
    pub(crate) fn level(&self) -> Level {
        self.types.first().map_or(Level::User, |event| event.level)
    }

    /// The number of all events; `None` if they were not counted.
    pub(crate) fn events(&self) -> Option<u64> {
        self.counted.then(|| self.streams.iter().filter_map(|stream| stream.events).sum())
    }

    /// For each clock of the trace, its first and its last tick.
    pub(crate) fn spans(&self) -> BTreeMap<ClockDomain, (Ticks, Ticks)> {
        let mut spans = BTreeMap::new();
        for stream in &self.streams {
            if let (Some(first), Some(last)) = (stream.first, stream.last) {
                let span: &mut (Ticks, Ticks) = spans.entry(stream.clock).or_insert((first, last));
                *span = (span.0.min(first), span.1.max(last));
            }
        }
        spans
    }

    /// Ticks per second of a clock, from the trace's header or its clock snapshots.
    pub(crate) fn rate(&self, clock: ClockDomain, others: &[(ClockDomain, Snapshot)]) -> Option<Hertz> {
        match clock {
            ClockDomain::Tsc => self.tick_hz.or_else(|| {
                let all = || self.snapshots.iter().chain(others);
                [ClockDomain::MonotonicRaw, ClockDomain::Monotonic, ClockDomain::Boottime].iter().find_map(
                    |domain| {
                        let mut of: Vec<Snapshot> =
                            all().filter(|(d, _)| d == domain).map(|(_, snapshot)| *snapshot).collect();
                        of.sort_by_key(|snapshot| snapshot.before);
                        ClockFit::through(&of).map(|fit| fit.rate())
                    },
                )
            }),
            ClockDomain::Ticks => self.tick_hz,
            _ => Hertz::new(1e9),
        }
    }
}
