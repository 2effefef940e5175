//! The interface of an open trace file, for all formats.

use std::fmt;

use sigmund_model::{ClockDomain, ClockPair, Cpu, EventStream, EventType, Hertz, Loss, Lwp, Snapshot};

/// An open trace: its header has been read, its events have not.
pub trait TraceFile: fmt::Debug + Send + Sync {
    /// The format and its version, as text: `trace.dat version 7, zstd`.
    fn format(&self) -> String;

    /// The events it declares. [`Event::kind`](sigmund_model::Event::kind) is an index here.
    fn event_types(&self) -> &[EventType];

    /// Its streams, each in time order from the first event. Each call starts again from the beginning.
    fn streams(&self) -> Vec<TraceStream>;

    /// Names of LWPs that are stored separately from the events, in time order: the last one for an LWP applies.
    fn lwp_names(&self) -> &[(Lwp, String)] {
        &[]
    }

    /// Losses that the header shows; the streams have the others.
    fn losses(&self) -> &[Loss] {
        &[]
    }

    /// Instants that were read on the TSC and on another clock; if the file has a conversion, two instants converted by
    /// it.
    fn snapshots(&self) -> Vec<(ClockDomain, Snapshot)> {
        Vec::new()
    }

    /// Instants on two clocks other than the TSC, from the file: perf's `CLOCK_DATA`, the offset of an LTTng clock to
    /// the epoch. One is enough for two clocks that count nanoseconds.
    fn clock_pairs(&self) -> Vec<ClockPair> {
        Vec::new()
    }

    /// Ticks per second of the TSC, or of a clock of unknown ticks, if the file has it.
    fn tick_hz(&self) -> Option<Hertz> {
        None
    }

    /// Other facts in the file, as rows of the table `info`: `uname`, `host`, `writer`, …
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Events of one trace in time order: usually those of one CPU of one buffer.
pub struct TraceStream {
    /// The clock of its ticks, which are nanoseconds except for [`ClockDomain::Tsc`] and [`ClockDomain::Ticks`].
    pub clock: ClockDomain,
    /// The CPU of these events; `None` if they are of several CPUs.
    pub cpu: Option<Cpu>,
    /// The name of the buffer (tracefs instance, channel); empty if there is only one.
    pub buffer: String,
    /// The events.
    pub events: Box<dyn EventStream + Send>,
}

impl fmt::Debug for TraceStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceStream { clock, cpu, buffer, events: _ } = self;
        f.debug_struct("TraceStream")
            .field("clock", clock)
            .field("cpu", cpu)
            .field("buffer", buffer)
            .finish_non_exhaustive()
    }
}
