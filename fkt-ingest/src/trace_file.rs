//! What an open trace file offers, whatever its format.

use std::fmt;

use sigmund_model::{ClockDomain, ClockPair, Cpu, EventStream, EventType, Hertz, Loss, Lwp, Snapshot};

/// An open trace: its head is read, its events are not.
pub trait TraceFile: fmt::Debug + Send + Sync {
    /// The format and its version, as text: `trace.dat version 7, zstd`.
    fn format(&self) -> String;

    /// The events it declares. [`Event::kind`](sigmund_model::Event::kind) is an index here.
    fn event_types(&self) -> &[EventType];

    /// Its streams, each in the order of time, from the first event. Each call starts anew.
    fn streams(&self) -> Vec<TraceStream>;

    /// The names of LWPs that are stored apart from the events, in the order of time: of two for one LWP, the later counts.
    fn lwp_names(&self) -> &[(Lwp, String)] {
        &[]
    }

    /// What is missing according to the head; the streams have the other losses.
    fn losses(&self) -> &[Loss] {
        &[]
    }

    /// Instants that were read on the TSC and on another clock; if the file states a conversion, two instants
    /// converted by it.
    fn snapshots(&self) -> Vec<(ClockDomain, Snapshot)> {
        Vec::new()
    }

    /// Instants that were read on two other clocks, or that the file states of them: perf's `CLOCK_DATA`, the offset to
    /// the epoch of an LTTng clock. One suffices for two clocks that count nanoseconds.
    fn clock_pairs(&self) -> Vec<ClockPair> {
        Vec::new()
    }

    /// Ticks per second of the TSC, or of a clock of unknown ticks, where the file says so.
    fn tick_hz(&self) -> Option<Hertz> {
        None
    }

    /// Other facts in the file, as rows of the table `info`: `uname`, `host`, `writer`, …
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Events of one trace, in the order of time: of a CPU of a buffer, mostly.
pub struct TraceStream {
    /// The clock of its ticks: nanoseconds, but for [`ClockDomain::Tsc`] and [`ClockDomain::Ticks`].
    pub clock: ClockDomain,
    /// The CPU whose events these are; `None` if it has those of several.
    pub cpu: Option<Cpu>,
    /// The name of the buffer (tracefs instance, channel); empty for the only one.
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
