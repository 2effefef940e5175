//! ftrace's events as text: the content of `trace` and `trace_pipe` of tracefs, and the output of `trace-cmd report`.
//!
//! ```text
//!   # tracer: nop                                             cpus=2
//!   # entries-in-buffer/entries-written: 3/3   #P:2           CPU:0 [178 EVENTS DROPPED]
//!   CPU:1 [LOST 12 EVENTS]
//!     bash-1994  [000] d..2.   55.123456: sched_switch: …       bash-1994  [000]   55.123456: sched_switch: …
//! ```
//! [`line`] parses a line, [`pairs`] its fields.
//!
//! The text has no declarations of events, so all of it is read once when it is opened ([`survey`]) to find their names
//! and fields, and to build an index of the lines of each CPU ([`runs`]). Each stream then reads its own lines. Both
//! passes take linear time. Only the index, 1 to 3 % of the text, and the names of events and LWPs are kept in memory.
//!
//! Cost, one thread of an AMD EPYC at 2.6 GHz, by CPU time, opening included: a report of 1.3 M events, mostly system
//! calls, at 2.2 M events/s or 215 MB/s (`cargo run --release -p fkt-ingest --example fxt_speed FILE`).
//!
//! A text does not contain its clock (`local`, `mono`, … look the same: use `--clock`), times below a microsecond, and
//! fields that its event does not print.

mod line;
mod line_stream;
mod pairs;
mod runs;
mod survey;
mod types;

use std::sync::Arc;

use sigmund_model::{ClockDomain, Cpu, EventType, Loss, Lwp};

use self::line::{Line, PrintedTime};
use self::line_stream::LineStream;
use self::runs::Runs;
use self::survey::Survey;
use self::types::TextTypes;
use crate::input::Input;
use crate::trace_file::{TraceFile, TraceStream};

/// Number of lines that are checked to recognise a text of ftrace.
const LOOKED_AT: usize = 50;

/// Whole numbers that grow by less than this per line are from ftrace's clock `counter`.
const COUNTER_STEP: u64 = 4;

/// An open text of ftrace.
#[derive(Debug)]
pub struct FtraceText {
    shared: Arc<TextData>,
    clock: ClockDomain,
    cpus: Option<u64>,
    tracer: Option<String>,
    lwp_names: Vec<(Lwp, String)>,
    losses: Vec<Loss>,
}

/// Data that its streams share.
#[derive(Debug)]
struct TextData {
    input: Input,
    types: TextTypes,
    runs: Vec<(Cpu, Runs)>,
    has_flags: bool,
}

impl FtraceText {
    /// Whether a file with this beginning is a text of ftrace: its first lines identify it, or one of them is an event.
    /// A kilobyte is usually enough.
    pub fn is_ftrace_text(head: &[u8]) -> bool {
        let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
        let is_listing = first.starts_with(b"# tick_hz")
            || memchr::memmem::find(first, b"date_tick").is_some()
            || memchr::memmem::find(first, b"type\t").is_some();
        let identifies_it = |line: &[u8]| {
            line.starts_with(b"# tracer:")
                || line.starts_with(b"# entries-in-buffer")
                || line.strip_prefix(b"cpus=").and_then(|n| line::number(n.trim_ascii())).is_some()
        };
        let is_event = |line: &[u8]| Line::parse(line.trim_ascii_end()).is_some();
        // A line of a binary file may have any length.
        let head = &head[..head.len().min(1 << 16)];
        !is_listing
            && head.split(|b| *b == b'\n').take(LOOKED_AT).any(|line| identifies_it(line) || is_event(line))
    }

    pub(crate) fn read(input: Input) -> FtraceText {
        let survey = Survey::of(input.bytes(), &input.name());
        let clock = clock(&survey);
        let Survey { types, runs, lwp_names, losses, has_flags, cpus, tracer, .. } = survey;
        let shared = Arc::new(TextData { input, types, runs, has_flags });
        FtraceText { shared, clock, cpus, tracer, lwp_names, losses }
    }
}

/// Seconds may be of any of ftrace's clocks in ns; whole numbers are the TSC, unless they only count events.
fn clock(survey: &Survey) -> ClockDomain {
    match survey.span {
        Some((PrintedTime::Ticks(first), PrintedTime::Ticks(last))) => {
            let counts = last.saturating_sub(first) <= survey.lines.saturating_mul(COUNTER_STEP);
            if counts && survey.lines > 1 { ClockDomain::Ticks } else { ClockDomain::Tsc }
        }
        _ => ClockDomain::Local,
    }
}

impl TraceFile for FtraceText {
    fn format(&self) -> String {
        let writer =
            if self.tracer.is_some() { "ftrace's text" } else { "ftrace's text, as of trace-cmd report" };
        writer.to_owned()
    }

    fn event_types(&self) -> &[EventType] {
        self.shared.types.declared()
    }

    fn streams(&self) -> Vec<TraceStream> {
        let stream = |(index, (cpu, _)): (usize, &(Cpu, Runs))| {
            let events = Box::new(LineStream::new(Arc::clone(&self.shared), index, *cpu));
            TraceStream { clock: self.clock, cpu: Some(*cpu), buffer: String::new(), events }
        };
        self.shared.runs.iter().enumerate().map(stream).collect()
    }

    fn lwp_names(&self) -> &[(Lwp, String)] {
        &self.lwp_names
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        let mut fact = |key: &str, value: String| facts.push((key.to_owned(), value));
        if let Some(cpus) = self.cpus {
            fact("cpus", cpus.to_string());
        }
        if let Some(tracer) = &self.tracer {
            fact("tracer", tracer.clone());
        }
        let because = match self.clock {
            ClockDomain::Tsc => "whole numbers: taken for the TSC",
            ClockDomain::Ticks => "whole numbers that only count events",
            _ => "seconds of an unknown clock: taken for ftrace's local one",
        };
        fact("clock_evidence", because.to_owned());
        facts
    }
}
