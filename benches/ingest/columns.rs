//! Decodes a trace of any format to columns, batch by batch, and does nothing else: all fields of all events.

use std::{hint::black_box, io, path::Path};

use fkt_ingest::TraceStream;
use sigmund_model::{Event, Params};

/// Number of events of a batch.
const BATCH: usize = 8 << 10;

/// Columns of one batch: a row for each event, and the numbers and texts of all events one after another.
struct Columns {
    events: usize,
    tick: [u64; BATCH],
    kind: [u32; BATCH],
    cpu: [u32; BATCH],
    lwp: [u32; BATCH],
    context: [u8; BATCH],
    /// The index after the last number of each event.
    number_ends: [u32; BATCH],
    numbers: Vec<i64>,
    texts: String,
    text_ends: Vec<u32>,
}

impl Columns {
    fn new() -> Box<Columns> {
        Box::new(Columns {
            events: 0,
            tick: [0; BATCH],
            kind: [0; BATCH],
            cpu: [0; BATCH],
            lwp: [0; BATCH],
            context: [0; BATCH],
            number_ends: [0; BATCH],
            numbers: Vec::new(),
            texts: String::new(),
            text_ends: Vec::new(),
        })
    }

    /// Adds an event; there must be room.
    #[inline]
    fn push(&mut self, event: &Event) {
        let row = self.events;
        self.tick[row] = event.tick.0;
        self.kind[row] = event.kind;
        self.cpu[row] = event.cpu.map_or(u32::MAX, |cpu| cpu.0);
        self.lwp[row] = event.lwp.map_or(u32::MAX, |lwp| lwp.0);
        self.context[row] = event.context as u8;
        match event.params.all_numbers() {
            Some(numbers) => self.numbers.extend(numbers),
            None => self.numbers.extend(event.params.numbers().map(|number| number.unwrap_or(i64::MIN))),
        }
        self.number_ends[row] = self.numbers.len() as u32;
        if event.params.texts() > 0 {
            self.push_texts(&event.params);
        }
        self.events = row + 1;
    }

    fn push_texts(&mut self, params: &Params) {
        for text in params.iter().take(params.texts()).filter_map(|param| param.text) {
            self.texts.push_str(text);
            self.text_ends.push(self.texts.len() as u32);
        }
    }

    fn is_full(&self) -> bool {
        self.events == BATCH
    }

    /// Discards the batch, and returns its number of events.
    fn flush(&mut self) -> u64 {
        let events = black_box(&*self).events as u64;
        self.events = 0;
        self.numbers.clear();
        self.texts.clear();
        self.text_ends.clear();
        events
    }
}

/// The format of a trace, for display.
pub(crate) fn format(trace: &Path) -> io::Result<String> {
    let traces = fkt_ingest::open(trace).map_err(io::Error::other)?;
    Ok(traces.first().map_or_else(String::new, |trace| trace.format()))
}

/// Decodes all streams in the order in which a merge reads them: always a batch of the stream that is least advanced.
/// Returns the number of events.
pub(crate) fn decode(trace: &Path) -> io::Result<u64> {
    let traces = fkt_ingest::open(trace).map_err(io::Error::other)?;
    let (mut events, mut columns, mut event) = (0, Columns::new(), Event::default());
    let mut streams: Vec<(u64, TraceStream)> =
        traces.iter().flat_map(|trace| trace.streams()).map(|stream| (0, stream)).collect();
    while let Some(at) = (0..streams.len()).min_by_key(|at| streams[*at].0) {
        let (reached, stream) = &mut streams[at];
        while !columns.is_full() && stream.events.next_into(&mut event)? {
            columns.push(&event);
        }
        *reached = event.tick.0;
        if !columns.is_full() {
            streams.swap_remove(at);
        }
        events += columns.flush();
    }
    Ok(events)
}
