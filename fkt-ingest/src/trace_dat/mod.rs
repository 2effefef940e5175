//! trace.dat, the file of trace-cmd and KernelShark, versions 6 and 7 (trace-cmd 3.1.6; its manual pages
//! trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5)).
//!
//! ```text
//!   | 17 08 44 "tracing" | "7\0" | endian u8 | long size u8 | page size u32 | … version-dependent
//!
//!   version 6: everything in one fixed order, then the pages of each CPU           see [`v6`]
//!   version 7: sections that refer to each other by offset; some compressed        see [`v7`]
//! ```
//!
//! Both contain the same: the page layout, the declarations of all events ([`metadata`]), and for each buffer (tracefs
//! instance) and CPU a region of ring-buffer pages ([`pages`]), read by [`KernelStream`].
//!
//! Both exist in either byte order, from 32-bit and 64-bit kernels.

mod clock;
mod facts;
mod file_header;
mod frames;
mod metadata;
mod page_stream;
mod pages;
mod time_shift;
mod tracing_data;
mod v6;
mod v7;

use std::path::Path;
use std::sync::Arc;

use sigmund_model::{ClockDomain, EventType, Hertz, Loss, Lwp, Snapshot};

pub use self::clock::TscToNanos;
use self::file_header::FileHeader;
pub(crate) use self::file_header::MAGIC;
pub(crate) use self::metadata::MAX_REGIONS;
pub(crate) use self::metadata::option;
use self::metadata::{Buffer, Metadata};
pub use self::page_stream::KernelStream;
use self::page_stream::TimeCorrection;
pub(crate) use self::tracing_data::TracingData;
pub(crate) use self::v7::section;
use crate::error::Error;
use crate::format::EventTable;
use crate::input::Input;
use crate::trace_file::{TraceFile, TraceStream};

/// An open trace.dat: its header has been read, its events have not.
#[derive(Debug)]
pub struct TraceDat {
    version: u32,
    input: Input,
    metadata: Metadata,
    table: Arc<EventTable>,
    /// Whether times are converted to the host's clock.
    shifted: bool,
}

impl TraceDat {
    /// Whether a file that begins with these bytes is a trace.dat. Twelve bytes are enough.
    ///
    /// The tracing data within a perf.data begins with the same magic, but is not a trace.dat.
    pub fn is_trace_dat(head: &[u8]) -> bool {
        head.strip_prefix(MAGIC).is_some_and(|rest| rest.starts_with(b"6\0") || rest.starts_with(b"7\0"))
    }

    /// Maps the file and reads its header. The events are read by [`streams`](Self::streams).
    ///
    /// The file must not be truncated by another process while it is open: the system would end this process
    /// (SIGBUS), as with every mapped file.
    ///
    /// # Errors
    /// If the file cannot be mapped, is not a trace.dat, is of a variant that is not supported (another version,
    /// another compression), or its header is damaged. After a readable header, everything readable is kept; the rest
    /// is among [`losses`](Self::losses).
    pub fn open(path: &Path) -> Result<TraceDat, Error> {
        TraceDat::read(Input::open(path)?)
    }

    pub(crate) fn read(input: Input) -> Result<TraceDat, Error> {
        let (head, rest) = FileHeader::parse(&input)?;
        let metadata = match head.version {
            6 => v6::read(&input, &head, rest)?,
            _ => v7::read(&input, &head, rest)?,
        };
        let is_x86_64 = metadata.uname.as_deref().is_some_and(|uname| uname.contains("x86_64"));
        let table = Arc::new(metadata.tracing.table(is_x86_64));
        Ok(TraceDat { version: head.version, input, metadata, table, shifted: false })
    }

    /// The events that this trace declares, and one more: `unknown(id, size)` for records of undeclared events.
    /// [`Event::kind`](sigmund_model::Event::kind) is an index here.
    pub fn event_types(&self) -> &[EventType] {
        self.table.types()
    }

    /// The clock of the top buffer, if known. The streams have the clocks of the other buffers.
    ///
    /// trace-cmd 3.1.6 writes this clock for instances (`-B`) as well, whatever theirs was, so users must be able to
    /// override it.
    pub fn clock(&self) -> Option<ClockDomain> {
        ClockDomain::from_name(self.clock_name()?)
    }

    /// ftrace's name of the clock: `x86-tsc`, `mono`, `local`, …
    pub fn clock_name(&self) -> Option<&str> {
        let of_buffers = self.metadata.buffers.iter().find_map(|b| b.clock.as_deref());
        self.metadata.clock.as_deref().or(of_buffers)
    }

    /// One stream for each CPU of each buffer, from its first event. Each call starts again from the beginning.
    ///
    /// Times in nanoseconds include the offsets that the file requests (`--ts-offset`, `--date`).
    pub fn streams(&self) -> Vec<KernelStream> {
        let buffers = self.metadata.buffers.iter();
        buffers
            .flat_map(|buffer| {
                let (clock, dated) = (self.clock_of(buffer), self.metadata.dated);
                let in_nanos = clock::is_nanoseconds(clock);
                let offset = if in_nanos { self.metadata.time_offset } else { 0 };
                let clock = if in_nanos && dated { ClockDomain::Realtime } else { clock };
                buffer.regions.iter().map(move |region| {
                    let shift = self.metadata.time_shift.as_ref().filter(|_| self.shifted);
                    let correction = TimeCorrection::new(shift.and_then(|s| s.of_cpu(region.cpu)), offset);
                    let (table, layout) = (Arc::clone(&self.table), self.metadata.tracing.layout);
                    KernelStream::new(self.input.clone(), table, layout, buffer, region, clock, correction)
                })
            })
            .collect()
    }

    fn clock_of(&self, buffer: &Buffer) -> ClockDomain {
        clock::domain(buffer.clock.as_deref().or(self.metadata.clock.as_deref()))
    }

    /// Converts the times of a guest's recording to its host's clock from now on, by the corrections that trace-cmd's
    /// agent wrote; `false` if the file has none.
    ///
    /// As in `trace-cmd report`, times are the guest's own unless the host's file is read together with it.
    pub fn shift_to_host(&mut self) -> bool {
        self.shifted = self.metadata.time_shift.is_some();
        self.shifted
    }

    /// The trace id of this recording, and that of the corresponding recording of the host.
    pub fn trace_ids(&self) -> (Option<u64>, Option<u64>) {
        (self.metadata.trace_id, self.metadata.time_shift.as_ref().map(|shift| shift.peer_trace_id))
    }

    /// The kernel's saved names of LWPs: the newest `comm` of each.
    pub fn lwp_names(&self) -> &[(Lwp, String)] {
        &self.metadata.tracing.lwp_names
    }

    /// Missing parts of the header, and events that the kernel counted as lost without their position.
    pub fn losses(&self) -> &[Loss] {
        &self.metadata.tracing.losses
    }

    /// Number of CPUs of the machine.
    pub fn cpu_count(&self) -> Option<u32> {
        self.metadata.cpu_count
    }

    /// `uname` of the machine.
    pub fn uname(&self) -> Option<&str> {
        self.metadata.uname.as_deref()
    }

    /// Version of the program that wrote the file.
    pub fn writer(&self) -> Option<&str> {
        self.metadata.writer.as_deref()
    }

    /// `per_cpu/cpuN/stats` of each CPU and buffer, as the kernel wrote it.
    pub fn cpu_stats(&self) -> &[String] {
        &self.metadata.cpu_stats
    }

    /// The kernel's own conversion of the TSC, if it is in the file.
    pub fn tsc_to_nanos(&self) -> Option<TscToNanos> {
        self.metadata.tsc_to_nanos
    }
}

impl TraceFile for TraceDat {
    fn format(&self) -> String {
        format!("trace.dat version {}, {}", self.version, self.metadata.compression.name())
    }

    fn event_types(&self) -> &[EventType] {
        self.event_types()
    }

    fn streams(&self) -> Vec<TraceStream> {
        let boxed = |stream: KernelStream| TraceStream {
            clock: stream.clock(),
            cpu: Some(stream.cpu()),
            buffer: stream.buffer().to_owned(),
            events: Box::new(stream),
        };
        self.streams().into_iter().map(boxed).collect()
    }

    fn lwp_names(&self) -> &[(Lwp, String)] {
        self.lwp_names()
    }

    fn losses(&self) -> &[Loss] {
        self.losses()
    }

    /// Two instants a second apart, by the conversion of the machine's kernel.
    fn snapshots(&self) -> Vec<(ClockDomain, Snapshot)> {
        let Some(conversion) = self.tsc_to_nanos() else { return Vec::new() };
        let Some(hertz) = conversion.hertz() else { return Vec::new() };
        let mut streams = self.streams().into_iter().filter(|s| s.clock() == ClockDomain::Tsc);
        let Some(first) = streams.find_map(|mut stream| stream.first_tick()) else { return Vec::new() };
        let snapshots = conversion.snapshots(first, hertz.per_second() as u64);
        snapshots.map(|snapshot| (ClockDomain::Local, snapshot)).to_vec()
    }

    /// `ns = tsc × mult >> shift`, if the machine's kernel had the conversion.
    fn tick_hz(&self) -> Option<Hertz> {
        self.tsc_to_nanos()?.hertz()
    }

    fn facts(&self) -> Vec<(String, String)> {
        facts::of(&self.metadata)
    }
}
