//! The pass over the whole text when it is opened: finds the events, fields and CPUs, the positions of each CPU's
//! lines, and damage.

use std::collections::HashMap;
use std::ops::Range;

use sigmund_model::{Cpu, Loss, LossKind, Lwp, Severity};

use super::line::{Line, Lost, PrintedTime, number};
use super::pairs::pairs;
use super::runs::Runs;
use super::types::TextTypes;
use crate::error::ParseError;
use crate::losses::kernel_loss;

/// Linux supports at most 8192 CPUs; a line with a larger number is damaged.
const MAX_CPUS: usize = 8192;

/// Largest number of LWPs whose names are kept.
const MAX_LWPS: usize = 1 << 17;

/// Damaged lines that get a row each; the others are counted.
const MAX_ROWS: u64 = 100;

/// The result of the pass.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) types: TextTypes,
    pub(super) runs: Vec<(Cpu, Runs)>,
    pub(super) lwp_names: Vec<(Lwp, String)>,
    pub(super) losses: Vec<Loss>,
    pub(super) lines: u64,
    /// The first and the last time.
    pub(super) span: Option<(PrintedTime, PrintedTime)>,
    /// Whether lines have flags.
    pub(super) has_flags: bool,
    /// Number of CPUs, if the text has it.
    pub(super) cpus: Option<u64>,
    /// The text after `# tracer:`.
    pub(super) tracer: Option<String>,
    by_cpu: HashMap<u32, usize>,
    open: Option<(usize, Range<usize>)>,
    comms: HashMap<Lwp, Range<usize>>,
    damaged: u64,
}

/// The kind of a line.
enum LineKind<'a> {
    Event(Line<'a>),
    Lost(Lost),
    Comment,
    Damaged(&'static str),
}

impl Survey {
    /// Reads `text` once; `name` is used in messages.
    pub(super) fn of(text: &[u8], name: &str) -> Survey {
        let mut survey = Survey::default();
        let mut found = Vec::new();
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', text) {
            let line = start..newline + 1;
            start = newline + 1;
            match survey.line_kind(&text[line.clone()]) {
                LineKind::Event(event) => {
                    pairs(event.name, event.text, &mut found);
                    survey.types.add(event.name, &found);
                    survey.add(&event, text, line);
                }
                LineKind::Lost(lost) => survey.take(lost.cpu, line),
                LineKind::Comment => {}
                LineKind::Damaged(expected) => survey.damage(name, &text[line.clone()], line.start, expected),
            }
        }
        survey.close_run();
        survey.end(text, name, start);
        survey
    }

    fn line_kind<'a>(&mut self, line: &'a [u8]) -> LineKind<'a> {
        let line = line.trim_ascii_end();
        if let Some(comment) = line.strip_prefix(b"#") {
            self.comment(comment);
            return LineKind::Comment;
        }
        if let Some(event) = Line::parse(line) {
            return match self.has_same_clock(&event) {
                true => LineKind::Event(event),
                false => LineKind::Damaged("a time of the same kind as before, and a CPU below 8192"),
            };
        }
        if let Some(lost) = Lost::parse(line).filter(|lost| self.knows(lost.cpu)) {
            return LineKind::Lost(lost);
        }
        if let Some(cpus) = line.strip_prefix(b"cpus=").and_then(number) {
            self.cpus = Some(cpus);
            return LineKind::Comment;
        }
        let mark = line.is_empty() || line.starts_with(b"version = ") || line.ends_with(b" is empty");
        if mark {
            LineKind::Comment
        } else {
            LineKind::Damaged("comm-pid [cpu] time: event: fields, and not the latency format")
        }
    }

    /// Whether its time is of the same kind: seconds and whole numbers are of different clocks.
    fn has_same_clock(&self, event: &Line<'_>) -> bool {
        let same = self.span.is_none_or(|(first, _)| {
            matches!(
                (first, event.time),
                (PrintedTime::Nanos(_), PrintedTime::Nanos(_))
                    | (PrintedTime::Ticks(_), PrintedTime::Ticks(_))
            )
        });
        same && self.knows(event.cpu)
    }

    fn knows(&self, cpu: Cpu) -> bool {
        (cpu.0 as usize) < MAX_CPUS
    }

    fn comment(&mut self, comment: &[u8]) {
        let text = String::from_utf8_lossy(&comment[..comment.len().min(200)]).into_owned();
        let text = text.trim();
        if let Some(tracer) = text.strip_prefix("tracer:") {
            self.tracer = Some(tracer.trim().to_owned());
        }
        let Some(counts) = text.strip_prefix("entries-in-buffer/entries-written:") else { return };
        let mut words = counts.split_whitespace();
        let kept = words.next().and_then(|kept| kept.split_once('/'));
        self.cpus = words.next().and_then(|cpus| cpus.strip_prefix("#P:")?.parse().ok()).or(self.cpus);
        let Some((Ok(kept), Ok(written))) = kept.map(|(kept, all)| (kept.parse::<u64>(), all.parse::<u64>()))
        else {
            return;
        };
        let is_reported = self.losses.iter().any(|loss| loss.kind == LossKind::Overwritten);
        if let Some(count) = written.checked_sub(kept).filter(|count| *count > 0 && !is_reported) {
            let detail = format!("{count} of {written} events overwritten before the text was taken");
            let loss = kernel_loss(LossKind::Overwritten, Severity::Gap, None, detail);
            let advice = "record with a larger kernel buffer, or fewer kernel events";
            self.losses.push(Loss { count: Some(count), advice, ..loss });
        }
    }

    fn add(&mut self, event: &Line<'_>, text: &[u8], line: Range<usize>) {
        self.lines += 1;
        self.has_flags |= event.flag.is_some();
        let first = self.span.map_or(event.time, |(first, _)| first);
        self.span = Some((first, event.time));
        self.name_lwp(event, text);
        self.take(event.cpu, line);
    }

    /// Names are kept as positions in the text, because most lines repeat the name of an earlier one.
    fn name_lwp(&mut self, event: &Line<'_>, text: &[u8]) {
        if event.lwp == Lwp::IDLE || event.comm == b"<...>" {
            return;
        }
        let known = self.comms.get(&event.lwp).is_some_and(|known| text[known.clone()] == *event.comm);
        if !known && (self.comms.len() < MAX_LWPS || self.comms.contains_key(&event.lwp)) {
            let from = event.comm.as_ptr() as usize - text.as_ptr() as usize;
            self.comms.insert(event.lwp, from..from + event.comm.len());
        }
    }

    /// Adds a line to this CPU.
    fn take(&mut self, cpu: Cpu, line: Range<usize>) {
        let next = self.runs.len();
        let index = *self.by_cpu.entry(cpu.0).or_insert(next);
        if index == next {
            self.runs.push((cpu, Runs::default()));
        }
        match &mut self.open {
            Some((open, run)) if *open == index && run.end == line.start => run.end = line.end,
            _ => {
                self.close_run();
                self.open = Some((index, line));
            }
        }
    }

    fn close_run(&mut self) {
        if let Some((index, run)) = self.open.take() {
            self.runs[index].1.push(run);
        }
    }

    #[cold]
    fn damage(&mut self, name: &str, line: &[u8], at: usize, expected: &'static str) {
        self.damaged += 1;
        if self.damaged <= MAX_ROWS {
            self.note_loss(LossKind::Damaged, name, line, at, expected);
        }
    }

    fn note_loss(&mut self, kind: LossKind, name: &str, line: &[u8], at: usize, expected: &str) {
        let found = String::from_utf8_lossy(&line[..line.len().min(80)]).trim_end().to_owned();
        let parse_error = ParseError {
            at: at as u64,
            part: "line",
            expected: expected.to_owned(),
            found: format!("{found:?}"),
        };
        let loss = kernel_loss(kind, Severity::Gap, None, format!("{name}: {parse_error}"));
        self.losses.push(Loss { count: Some(1), ..loss });
    }

    /// Every line ends with a newline; without it, the line is incomplete.
    fn end(&mut self, text: &[u8], name: &str, last: usize) {
        let rest = &text[last..];
        if !rest.is_empty() && !rest.starts_with(b"#") {
            self.note_loss(LossKind::Truncated, name, rest, last, "a complete line");
        }
        if let Some(others) = self.damaged.checked_sub(MAX_ROWS).filter(|others| *others > 0) {
            let detail = format!("{name}: {others} more damaged lines");
            let loss = kernel_loss(LossKind::Damaged, Severity::Gap, None, detail);
            self.losses.push(Loss { count: Some(others), ..loss });
        }
        self.runs.sort_by_key(|(cpu, _)| cpu.0);
        let comms = std::mem::take(&mut self.comms);
        let named = comms.into_iter().map(|(lwp, at)| (lwp, String::from_utf8_lossy(&text[at]).into_owned()));
        self.lwp_names = named.collect();
        self.lwp_names.sort_by_key(|(lwp, _)| lwp.0);
        self.types.declare();
    }
}
