//! Decoding a trace of any format to columns, batch by batch, and nothing else: all fields of all events.

use std::{hint::black_box, io, path::Path};

use sigmund_model::Event;

const BATCH: usize = 8 << 10;

/// Columns of numbers, and the texts behind each other.
#[derive(Default)]
struct Columns {
    tick: Vec<u64>,
    kind: Vec<u32>,
    cpu: Vec<u32>,
    lwp: Vec<u32>,
    context: Vec<u8>,
    numbers: Vec<i64>,
    number_ends: Vec<u32>,
    texts: String,
    text_ends: Vec<u32>,
}

impl Columns {
    fn push(&mut self, event: &Event) {
        self.tick.push(event.tick.0);
        self.kind.push(event.kind);
        self.cpu.push(event.cpu.map_or(u32::MAX, |cpu| cpu.0));
        self.lwp.push(event.lwp.map_or(u32::MAX, |lwp| lwp.0));
        self.context.push(event.context as u8);
        for param in event.params.iter() {
            self.numbers.push(param.number.unwrap_or(i64::MIN));
            if let Some(text) = param.text {
                self.texts.push_str(text);
                self.text_ends.push(self.texts.len() as u32);
            }
        }
        self.number_ends.push(self.numbers.len() as u32);
    }

    fn clear(&mut self) {
        self.tick.clear();
        self.kind.clear();
        self.cpu.clear();
        self.lwp.clear();
        self.context.clear();
        self.numbers.clear();
        self.number_ends.clear();
        self.texts.clear();
        self.text_ends.clear();
    }
}

/// The format of a trace, for people.
pub(crate) fn format(trace: &Path) -> io::Result<String> {
    let traces = fkt_ingest::open(trace).map_err(io::Error::other)?;
    Ok(traces.first().map_or_else(String::new, |trace| trace.format()))
}

/// Decodes all streams, one after the other, and says how many events there were.
pub(crate) fn decode(trace: &Path) -> io::Result<u64> {
    let traces = fkt_ingest::open(trace).map_err(io::Error::other)?;
    let (mut events, mut columns, mut event) = (0, Columns::default(), Event::default());
    for mut stream in traces.iter().flat_map(|trace| trace.streams()) {
        while stream.events.next_into(&mut event)? {
            columns.push(&event);
            if columns.tick.len() == BATCH {
                events += black_box(&columns).tick.len() as u64;
                columns.clear();
            }
        }
        events += black_box(&columns).tick.len() as u64;
        columns.clear();
    }
    Ok(events)
}
