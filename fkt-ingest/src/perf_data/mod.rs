//! perf.data, what `perf record` writes: tracepoints, context switches, profiles, and names, births and deaths of LWPs
//! (tools/perf/Documentation/perf.data-file-format.txt, v6.12).
//!
//! ```text
//!   of a file        header | attributes | records … | features               [`head`]
//!   of a pipe        16 bytes | records …; the first say what a file's head says
//!   of a directory   data (as of a file, with perf's own records), data.0, data.1, …: records alone
//!
//!   -z               records within one zstd stream, cut into COMPRESSED records   [`tape`]
//! ```
//!
//! [`attr`] knows where the fields of a record are, [`described`] what else is said, [`index`] goes through all records
//! once and finds which CPU's are where, [`order`] how far they are out of order; a [`PerfStream`] reads those of one
//! CPU, and [`decode`] makes events of them. Streams of a compressed file share one pass over it ([`shared`]).
//!
//! Memory does not grow with the file: it is mapped, the index is bounded, and compressed records are unpacked in
//! pieces. What cannot be read is a row of the losses, and behind damage the next records are looked for.
//!
//! Cost: 4.7 M events (system calls, scheduler, interrupts; 510 MB in the page cache) with 21 M parameters in 0.48 s of
//! CPU time, opening with it, on an AMD EPYC at 2.6 GHz: 9.8 M events/s. `perf script` takes 6.5 s for them, 0.73 M/s
//! (`cargo run --release -p fkt-ingest --example read_speed FILE`; `perf script -i FILE >/dev/null`).
//!
//! The crate linux-perf-data (0.13) reads the same format and does not serve here. It gives one stream of all CPUs,
//! sorted, each record in a vector of its own: 3.5 M samples/s without their tracepoints' fields, and 117 MB of memory
//! for a file of 84 MB. It allocates what a file claims: one with a feature section of 2^38 bytes ends the program. It
//! does not skip the tracing data of a pipe, does not read directories, CLOCK_DATA or TIME_CONV, and ends at the first
//! damaged record.

mod attr;
mod decode;
mod described;
mod fields;
mod head;
mod index;
mod kinds;
pub(crate) mod layout;
mod order;
mod record;
mod shared;
mod stream;
mod tape;
mod tracing_data;

use std::path::Path;
use std::sync::Arc;

use sigmund_model::{
    ClockDomain, ClockFit, EventType, Hertz, Loss, LossKind, Lwp, Nanos, Severity, Snapshot, Ticks,
};

use self::decode::Meaning;
use self::described::{Described, TimeConv};
use self::fields::ByteOrder;
use self::head::{Cut, Head};
use self::index::{Beside, Index, Source};
use self::record::Attrs;
use self::shared::{Shared, Subscriber};
pub use self::stream::PerfStream;
use self::stream::{Ranges, Source as StreamSource};
use self::tape::Tape;
use crate::error::{Error, ErrorKind, Misfit};
use crate::input::Input;
use crate::losses::kernel_loss;
use crate::trace_file::{TraceFile, TraceStream};

/// An open perf.data: it is known which CPU's records are where.
#[derive(Debug)]
pub struct PerfData {
    format: String,
    clock: ClockDomain,
    meaning: Arc<Meaning>,
    files: Vec<(Tape, Index)>,
    lwp_names: Vec<(Lwp, String)>,
    facts: Vec<(String, String)>,
    time_conv: Option<TimeConv>,
    losses: Vec<Loss>,
}

impl PerfData {
    /// Whether a file that begins with these bytes is a perf.data.
    pub fn is_perf_data(head: &[u8]) -> bool {
        head::byte_order(head).is_some()
    }

    /// Maps the file, and looks through it once to find which CPU's records are where. `path` may be a directory that
    /// `perf record --threads` wrote.
    ///
    /// # Errors
    /// When the file cannot be mapped, is no perf.data, its records carry no time or cannot be told apart, or its
    /// head is damaged.
    pub fn open(path: &Path) -> Result<PerfData, Error> {
        match path.is_dir() {
            true => PerfData::open_directory(path),
            false => PerfData::read(Input::open(path)?),
        }
    }

    /// `data` has the head; `data.0`, `data.1`, … are records.
    fn open_directory(path: &Path) -> Result<PerfData, Error> {
        let entries = std::fs::read_dir(path).map_err(|error| Error::io(path, error))?;
        let numbered = entries.flatten().filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.strip_prefix("data.")?.parse().ok()?;
            Some((number, entry.path()))
        });
        let mut numbered: Vec<_> = numbered.collect();
        numbered.sort();
        let mut others = Vec::new();
        for (_, path) in &numbered {
            // An empty file cannot be mapped: a CPU that recorded nothing.
            if path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
                others.push(Input::open(path)?);
            }
        }
        PerfData::read_files(Input::open(&path.join("data"))?, others)
    }

    pub(crate) fn read(input: Input) -> Result<PerfData, Error> {
        PerfData::read_files(input, Vec::new())
    }

    fn read_files(input: Input, others: Vec<Input>) -> Result<PerfData, Error> {
        let Head { mut described, tape, is_pipe, cut } = head::read(&input)?;
        let name = input.name();
        let order = tape.order;
        let refuse = |why: &str| {
            let expected = "attributes that tell where time and id of a record are".to_owned();
            let misfit = Misfit { at: tape.from, part: "attributes", expected, found: why.to_owned() };
            Error::at(ErrorKind::Unsupported, input.path(), misfit)
        };
        let mut beside = Beside::default();
        if let Some(cut) = &cut {
            beside.losses.push(loss_of(cut, &tape));
        }
        let mut files = Vec::new();
        let attrs = if is_pipe {
            let mut source = Source::Pipe(&mut described, None);
            files.push((tape.clone(), Index::read(&tape, &mut source, &mut beside).map_err(refuse)?));
            let read = match source {
                Source::Pipe(_, attrs) => attrs,
                Source::File(_) => None,
            };
            described.name_attrs();
            match read {
                Some(attrs) => attrs,
                None => Attrs::new(described.attrs.clone()).map_err(refuse)?,
            }
        } else {
            described.name_attrs();
            let attrs = Attrs::new(described.attrs.clone()).map_err(refuse)?;
            let whole = |input: Input| Tape { order, from: 0, to: input.len(), input };
            for tape in std::iter::once(tape.clone()).chain(others.into_iter().map(whole)) {
                let index = Index::read(&tape, &mut Source::File(&attrs), &mut beside).map_err(refuse)?;
                files.push((tape, index));
            }
            attrs
        };
        for (part, found) in described.unreadable.drain(..) {
            let kind = LossKind::Damaged;
            beside.losses.push(kernel_loss(
                kind,
                Severity::Serious,
                None,
                format!("{name}: {part}: {found}"),
            ));
        }
        let big_endian_raw = described.raw_order == Some(ByteOrder::Big);
        if big_endian_raw {
            // The table of declarations reads little-endian numbers.
            described.formats.clear();
        }
        let (indices, tapes): (Vec<Index>, Vec<Tape>) =
            files.into_iter().map(|(tape, index)| (index, tape)).unzip();
        beside.finish(&name, &indices);
        let whole_cpus = indices.iter().any(|index| index.whole_cpus);
        let format = format_name(is_pipe, tapes.len() > 1, &indices, order);
        let clock = attrs.list().iter().find(|attr| attr.sample.time.is_some()).map(|attr| attr.clock());
        Ok(PerfData {
            format,
            clock: clock.unwrap_or(ClockDomain::Local),
            meaning: Arc::new(Meaning::new(&described, attrs, whole_cpus)),
            files: tapes.into_iter().zip(indices).collect(),
            lwp_names: beside.lwp_names,
            facts: facts(described),
            time_conv: beside.time_conv,
            losses: beside.losses,
        })
    }

    /// The tracepoints that were recorded, as trace.dat names them, and `unknown(id, size)`; an event for each other
    /// perf event (`cpu-clock(mode, ip, period, callchain)`); then `perf_comm`, `perf_fork`, `perf_exit`, `perf_mmap`,
    /// and, if asked for, `perf_switch_out(preempted, next_tid)` and `perf_switch_in(prev_tid)`.
    pub fn event_types(&self) -> &[EventType] {
        self.meaning.event_types()
    }

    /// The clock of the records. `Local` unless perf was told another (`-k CLOCK_MONOTONIC_RAW`).
    pub fn clock(&self) -> ClockDomain {
        self.clock
    }

    /// One stream for each CPU (of each file of a directory). `fit` turns the file's nanoseconds into ticks; without
    /// it, ticks are nanoseconds.
    pub fn streams(&self, fit: Option<ClockFit>) -> Vec<PerfStream> {
        self.files.iter().flat_map(|(tape, index)| self.streams_of(tape, index, fit)).collect()
    }

    fn streams_of(&self, tape: &Tape, index: &Index, fit: Option<ClockFit>) -> Vec<PerfStream> {
        let meaning = || Arc::clone(&self.meaning);
        let cpus = index.cpus.iter().map(|of_cpu| of_cpu.cpu);
        let shared = index.packed.then(|| Shared::new(tape, meaning(), cpus));
        let streams = index.cpus.iter().enumerate().map(|(queue, of_cpu)| {
            let source = match &shared {
                Some(shared) => {
                    StreamSource::Shared(Subscriber::new(Arc::clone(shared), queue, tape.clone()))
                }
                None => StreamSource::Ranges(Ranges::new(tape, of_cpu)),
            };
            PerfStream::new(source, tape.input.name(), meaning(), of_cpu, fit)
        });
        streams.collect()
    }

    /// The names of LWPs, the newest of each.
    pub fn lwp_names(&self) -> &[(Lwp, String)] {
        &self.lwp_names
    }

    /// What is missing as far as the first pass tells; streams tell the rest.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }
}

impl TraceFile for PerfData {
    fn format(&self) -> String {
        self.format.clone()
    }

    fn event_types(&self) -> &[EventType] {
        self.event_types()
    }

    fn streams(&self) -> Vec<TraceStream> {
        let boxed = |stream: PerfStream| TraceStream {
            clock: self.clock,
            cpu: stream.cpu(),
            buffer: String::new(),
            events: Box::new(stream),
        };
        self.streams(None).into_iter().map(boxed).collect()
    }

    fn lwp_names(&self) -> &[(Lwp, String)] {
        self.lwp_names()
    }

    fn losses(&self) -> &[Loss] {
        self.losses()
    }

    /// First and last instant of the records, by the conversion that TIME_CONV states; it is that of perf's own clock.
    fn snapshots(&self) -> Vec<(ClockDomain, Snapshot)> {
        let Some(conv) = self.time_conv.filter(|_| self.clock == ClockDomain::Local) else {
            return Vec::new();
        };
        let spans = self.files.iter().filter_map(|(_, index)| index.span);
        let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let instants = span.map(|(first, last)| [first, last]).into_iter().flatten();
        let snapshots = instants.filter_map(|ns| {
            let tick = Ticks(conv.tsc(ns)?);
            Some((ClockDomain::Local, Snapshot { before: tick, after: tick, ns: Nanos(ns) }))
        });
        snapshots.collect()
    }

    fn tick_hz(&self) -> Option<Hertz> {
        self.time_conv.and_then(|conv| Hertz::new(conv.tick_hz()))
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.facts.clone()
    }
}

fn loss_of(cut: &Cut, tape: &Tape) -> Loss {
    let (kind, at, part, expected, found) = match cut {
        Cut::Unfinished => {
            (LossKind::Unfinished, 48, "header", "the size of the records".to_owned(), "0".to_owned())
        }
        Cut::Truncated => (
            LossKind::Truncated,
            tape.from,
            "records",
            format!("records up to byte {}", tape.to),
            format!("the end of the file at {}", tape.input.len()),
        ),
    };
    let misfit = Misfit { at, part, expected, found };
    kernel_loss(kind, Severity::Gap, None, format!("{}: {misfit}", tape.input.name()))
}

/// `perf.data, pipe, zstd, big endian`
fn format_name(is_pipe: bool, is_directory: bool, indices: &[Index], order: ByteOrder) -> String {
    let parts = [
        (is_pipe, ", pipe"),
        (is_directory, ", directory"),
        (indices.iter().any(|index| index.packed), ", zstd"),
        (order == ByteOrder::Big, ", big endian"),
    ];
    let parts = parts.iter().filter(|(is, _)| *is).map(|(_, name)| *name);
    std::iter::once("perf.data").chain(parts).collect()
}

/// With `uname` as other formats have it.
fn facts(described: Described) -> Vec<(String, String)> {
    let mut facts = described.facts;
    let fact = |key: &str| facts.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value.as_str());
    let uname = format!("Linux {} {} {}", fact("host"), fact("kernel"), fact("arch"));
    if !facts.is_empty() {
        facts.push(("uname".to_owned(), uname));
    }
    facts
}
