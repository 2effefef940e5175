//! perf.data, the file of `perf record`: tracepoints, context switches, profiles, and names, creations and exits of
//! LWPs (tools/perf/Documentation/perf.data-file-format.txt, v6.12).
//!
//! ```text
//!   of a file        header | attributes | records … | features               [`file_header`]
//!   of a pipe        16 bytes | records …; the first ones replace a file's header
//!   of a directory   data (as of a file, with perf's own records), data.0, data.1, …: records alone
//!
//!   -z               records within one zstd stream, cut into COMPRESSED records   [`record_cursor`]
//! ```
//!
//! [`attr`] has the positions of the fields of a record, [`described`] the file's other descriptions; [`index`] reads
//! all records once and finds those of each CPU, [`order`] measures how far they are out of order; a [`PerfStream`]
//! reads the records of one CPU, and [`decode`] converts them to events. Streams of a compressed file share one pass
//! over it ([`shared`]).
//!
//! Memory does not grow with the file: it is mapped, the index is bounded, and compressed records are unpacked in
//! pieces. What cannot be read is a loss; after damage, reading resumes at the next plausible records.
//!
//! Cost: 4.7 M events (system calls, scheduler, interrupts; 510 MB in the page cache) with 21 M parameters in 0.48 s of
//! CPU time, opening with it, on an AMD EPYC at 2.6 GHz: 9.8 M events/s. `perf script` takes 6.5 s for them, 0.73 M/s
//! (`cargo run --release -p fkt-ingest --example read_speed FILE`; `perf script -i FILE >/dev/null`).
//! Compressed records are unpacked twice: for the index, and by the streams together if they are read side by side.
//! Least CPU time on one core that other programs used too, alternating with `perf script` (`benches/`, `ingest`; two
//! CPUs under hackbench, `perf record -z -a`):
//!
//! ```text
//!   -e sched:sched_switch,sched:sched_waking,irq:*,raw_syscalls:*   1.95 M events, 201 MB   0.23 s   perf script 3.4 s
//!   the same, small rings                                           0.69 M events,  71 MB   0.10 s   1.6 s
//!   -e sched:sched_switch,sched:sched_waking -m 16384               0.16 M events,  18 MB   0.036 s  0.38 s
//!   -e sched:*                                                      0.59 M events,  58 MB   0.11 s   1.05 to 1.25 s
//! ```
//!
//! In the last recording, zstd alone takes a third of the time: 35 ns an event in each pass.
//!
//! The crate linux-perf-data (0.13) reads the same format, but does not meet our needs. It returns one sorted stream of
//! all CPUs, with each record in a vector of its own: 3.5 M samples/s without the fields of tracepoints, and 117 MB of
//! memory for a file of 84 MB. It allocates by sizes from the file: a feature section of 2^38 bytes ends the program.
//! It does not skip the tracing data of a pipe, does not read directories, CLOCK_DATA or TIME_CONV, and stops at the
//! first damaged record.

mod attr;
mod cpu_stream;
mod decode;
mod described;
mod fields;
mod file_header;
mod index;
mod kinds;
pub(crate) mod layout;
mod open;
mod order;
mod record;
mod record_cursor;
mod shared;
mod tracing_data;

use std::sync::Arc;

use sigmund_model::{ClockDomain, ClockFit, ClockPair, EventType, Hertz, Loss, Lwp, Nanos, Snapshot, Ticks};

pub use self::cpu_stream::PerfStream;
use self::cpu_stream::{Ranges, RecordSource};
use self::decode::RecordDecoder;
use self::described::TimeConv;
use self::index::Index;
use self::record_cursor::RecordRange;
use self::shared::{SharedPass, Subscriber};
use crate::trace_file::{TraceFile, TraceStream};

/// An open perf.data: the positions of each CPU's records are known.
#[derive(Debug)]
pub struct PerfData {
    format: String,
    clock: ClockDomain,
    decoder: Arc<RecordDecoder>,
    files: Vec<(RecordRange, Index)>,
    lwp_names: Vec<(Lwp, String)>,
    facts: Vec<(String, String)>,
    time_conv: Option<TimeConv>,
    clock_pair: Option<ClockPair>,
    losses: Vec<Loss>,
}

impl PerfData {
    /// Whether a file with this beginning is a perf.data.
    pub fn is_perf_data(head: &[u8]) -> bool {
        file_header::byte_order(head).is_some()
    }

    /// The recorded tracepoints, named as in trace.dat, and `unknown(id, size)`; an event for each other perf event
    /// (`cpu-clock(mode, ip, period, callchain)`); then `perf_comm`, `perf_fork`, `perf_exit`, `perf_mmap`, and, if
    /// requested, `perf_switch_out(preempted, next_tid)` and `perf_switch_in(prev_tid)`.
    pub fn event_types(&self) -> &[EventType] {
        self.decoder.event_types()
    }

    /// The clock of the records: `Local`, unless perf was run with another (`-k CLOCK_MONOTONIC_RAW`).
    pub fn clock(&self) -> ClockDomain {
        self.clock
    }

    /// One stream for each CPU (of each file of a directory). `fit` converts the file's nanoseconds to ticks; without
    /// it, ticks are nanoseconds.
    pub fn streams(&self, fit: Option<ClockFit>) -> Vec<PerfStream> {
        self.files
            .iter()
            .flat_map(|(record_range, index)| self.streams_of(record_range, index, fit))
            .collect()
    }

    fn streams_of(
        &self,
        record_range: &RecordRange,
        index: &Index,
        fit: Option<ClockFit>,
    ) -> Vec<PerfStream> {
        let decoder = || Arc::clone(&self.decoder);
        let cpus = index.cpus.iter().map(|of_cpu| of_cpu.cpu);
        let shared = index.packed.then(|| SharedPass::new(record_range, decoder(), cpus));
        let streams = index.cpus.iter().enumerate().map(|(queue, of_cpu)| {
            let source = match &shared {
                Some(shared) => {
                    RecordSource::SharedPass(Subscriber::new(Arc::clone(shared), queue, record_range.clone()))
                }
                None => RecordSource::Ranges(Ranges::new(record_range, of_cpu)),
            };
            PerfStream::new(source, record_range.input.name(), decoder(), of_cpu, fit)
        });
        streams.collect()
    }

    /// The newest name of each LWP.
    pub fn lwp_names(&self) -> &[(Lwp, String)] {
        &self.lwp_names
    }

    /// Losses found by the first pass; the streams have the others.
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

    /// First and last instant of the records, by the conversion in TIME_CONV, which is that of perf's own clock.
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

    /// CLOCK_DATA: the clock of the records and the wall clock, read when perf began.
    fn clock_pairs(&self) -> Vec<ClockPair> {
        self.clock_pair.into_iter().collect()
    }

    fn tick_hz(&self) -> Option<Hertz> {
        self.time_conv.and_then(|conv| Hertz::new(conv.tick_hz()))
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.facts.clone()
    }
}
