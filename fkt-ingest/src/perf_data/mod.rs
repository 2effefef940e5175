//! perf.data, as far as it tells who was on which CPU: context switches, and names, births and deaths of LWPs.
//!
//! ```text
//!   | "PERFILE2" | u64 size | u64 attr size | {u64 offset, u64 size}: attributes, records, unused | features … |
//!
//!   attribute   struct perf_event_attr | {u64 offset, u64 size} of its ids
//!   record      u32 type | u16 misc | u16 size | … | sample_id
//!   sample_id   of the fields the attribute's sample_type names, in this order:
//!               u32 pid, u32 tid | u64 time | u64 id | u64 stream id | u32 cpu, u32 0 | u64 identifier
//! ```
//!
//! Records of one CPU are in the order of their times; those of different CPUs are mixed. Samples (tracepoints,
//! profiles) are not read yet; their number is a row of the losses.

pub(crate) mod layout;
mod record;
mod stream;

use std::path::Path;
use std::sync::Arc;

use sigmund_model::{
    ClockDomain, ClockFit, Cpu, EventType, Field, FieldType, Level, Loss, LossKind, Lwp, Severity,
};

use self::layout::{HEADER_SIZE, MAGIC};
use self::record::{Records, SampleId};
pub use self::stream::PerfStream;
use crate::cut::Cut;
use crate::error::{Error, ErrorKind, Misfit};
use crate::input::Input;
use crate::losses::kernel_loss;
use crate::trace_file::{TraceFile, TraceStream};

/// An open perf.data: it is known which CPU's records are where.
#[derive(Debug)]
pub struct PerfData {
    input: Input,
    sample_id: SampleId,
    clock: ClockDomain,
    types: Vec<EventType>,
    runs: Vec<CpuRuns>,
    lwp_names: Vec<(Lwp, String)>,
    losses: Vec<Loss>,
}

/// Where the records of a CPU are: ranges of bytes of the file, in the order of their times.
#[derive(Clone, Debug)]
struct CpuRuns {
    cpu: Cpu,
    runs: Arc<Vec<(u64, u64)>>,
}

/// Indices of the event types, in the order of [`PerfData::event_types`].
pub(crate) mod kind {
    pub(crate) const SWITCH_OUT: u32 = 0;
    pub(crate) const SWITCH_IN: u32 = 1;
    pub(crate) const COMM: u32 = 2;
    pub(crate) const FORK: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
}

impl PerfData {
    /// Whether a file that begins with these bytes is a perf.data (of a little-endian machine).
    pub fn is_perf_data(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// Maps the file, and looks through it once to find which CPU's records are where.
    ///
    /// # Errors
    /// When the file cannot be mapped, is no perf.data, was recorded by a pipe or compressed, its records carry no
    /// time and CPU, or its head is damaged.
    pub fn open(path: &Path) -> Result<PerfData, Error> {
        PerfData::read(Input::open(path)?)
    }

    pub(crate) fn read(input: Input) -> Result<PerfData, Error> {
        let head = head(&input).map_err(|(kind, misfit)| Error::at(kind, input.path(), misfit))?;
        let mut data = PerfData {
            input,
            sample_id: head.sample_id,
            clock: head.clock,
            types: event_types(),
            runs: Vec::new(),
            lwp_names: Vec::new(),
            losses: Vec::new(),
        };
        data.index(head.data_at, head.data_size);
        Ok(data)
    }

    /// `perf_switch_out(preempted)`, `perf_switch_in()`, `perf_comm(tid, comm)`, `perf_fork(tid, parent_tid)`,
    /// `perf_exit(tid)`.
    pub fn event_types(&self) -> &[EventType] {
        &self.types
    }

    /// The clock of the records. `Local` unless perf was told another (`-k CLOCK_MONOTONIC_RAW`).
    pub fn clock(&self) -> ClockDomain {
        self.clock
    }

    /// One stream for each CPU. `fit` turns the file's nanoseconds into ticks; without it, ticks are nanoseconds.
    pub fn streams(&self, fit: Option<ClockFit>) -> Vec<PerfStream> {
        let streams = self.runs.iter().map(|CpuRuns { cpu, runs }| {
            PerfStream::new(self.input.clone(), *cpu, Arc::clone(runs), self.sample_id, fit)
        });
        streams.collect()
    }

    /// The names of LWPs, in the order of the file; an LWP may have several.
    pub fn lwp_names(&self) -> &[(Lwp, String)] {
        &self.lwp_names
    }

    /// What is missing as far as the head tells; streams tell the rest.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Finds the runs of records of each CPU.
    fn index(&mut self, data_at: u64, data_size: u64) {
        let mut runs: Vec<(Cpu, Vec<(u64, u64)>)> = Vec::new();
        let mut not_read = 0;
        let end = match data_size {
            0 => {
                let (expected, found) = ("the size of the records".to_owned(), "0".to_owned());
                self.lose(LossKind::Unfinished, &Misfit { at: 48, part: "header", expected, found });
                self.input.len()
            }
            size => data_at.saturating_add(size),
        };
        if end > self.input.len() {
            let (expected, found) =
                (format!("records up to byte {end}"), format!("the end of the file at {}", self.input.len()));
            self.lose(LossKind::Truncated, &Misfit { at: data_at, part: "records", expected, found });
        }
        let input = self.input.clone();
        let mut records = Records::new(input.bytes(), data_at, end);
        let damage = loop {
            let record = match records.next() {
                Ok(Some(record)) => record,
                Ok(None) => break None,
                Err(misfit) => break Some(misfit),
            };
            if !record.is_read() {
                not_read += u64::from(record.is_of_the_kernel());
                continue;
            }
            if let Some((lwp, name)) = record.comm() {
                self.lwp_names.push((lwp, name.to_owned()));
            }
            let Some(id) = self.sample_id.read(&record) else { continue };
            // Written by perf itself, before the recording: a name, and no event.
            if id.time == 0 {
                continue;
            }
            let at = match runs.iter().position(|(cpu, _)| *cpu == id.cpu) {
                Some(at) => at,
                None => {
                    runs.push((id.cpu, Vec::new()));
                    runs.len() - 1
                }
            };
            let of_cpu = &mut runs[at].1;
            match of_cpu.last_mut() {
                Some(last) if last.1 == record.at => last.1 = records.at(),
                _ => of_cpu.push((record.at, records.at())),
            }
        };
        if let Some(misfit) = damage {
            self.lose(LossKind::Damaged, &misfit);
        }
        if not_read > 0 {
            let detail = format!("{}: {not_read} samples and other records are not read", self.input.name());
            let loss = kernel_loss(LossKind::NotRecorded, Severity::Note, None, detail);
            self.losses.push(Loss { count: Some(not_read), ..loss });
        }
        runs.sort_by_key(|(cpu, _)| *cpu);
        self.runs = runs.into_iter().map(|(cpu, runs)| CpuRuns { cpu, runs: Arc::new(runs) }).collect();
    }

    fn lose(&mut self, kind: LossKind, misfit: &Misfit) {
        let detail = format!("{}: {misfit}", self.input.name());
        self.losses.push(kernel_loss(kind, Severity::Gap, None, detail));
    }
}

struct Head {
    data_at: u64,
    data_size: u64,
    sample_id: SampleId,
    clock: ClockDomain,
}

impl TraceFile for PerfData {
    fn format(&self) -> String {
        "perf.data".to_owned()
    }

    fn event_types(&self) -> &[EventType] {
        self.event_types()
    }

    fn streams(&self) -> Vec<TraceStream> {
        let boxed = |stream: PerfStream| TraceStream {
            clock: self.clock,
            cpu: Some(stream.cpu()),
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
}

fn head(input: &Input) -> Result<Head, (ErrorKind, Misfit)> {
    let damaged = |misfit| (ErrorKind::Damaged, misfit);
    let mut cut = Cut::new(input.bytes(), 0);
    cut.tag(MAGIC, "magic").map_err(|m| (ErrorKind::NotThisFormat, m))?;
    let before = cut.clone();
    let size = cut.u64("size of the header").map_err(damaged)?;
    if size != HEADER_SIZE {
        let expected = format!("{HEADER_SIZE} (16 is a recording through a pipe)");
        return Err((
            ErrorKind::Unsupported,
            before.misfit("size of the header", expected, size.to_string()),
        ));
    }
    let mut number = |part| cut.u64(part).map_err(damaged);
    let attr_size = number("size of an attribute")?;
    let (attrs_at, attrs_size) = (number("attributes")?, number("attributes")?);
    let (data_at, data_size) = (number("records")?, number("records")?);

    let mut attrs = Cut::of_file(input.bytes(), attrs_at).part(attrs_size, "attributes").map_err(damaged)?;
    let mut found: Option<(SampleId, ClockDomain)> = None;
    while !attrs.rest().is_empty() {
        let mut attr = attrs.part(attr_size.max(112), "attribute").map_err(damaged)?;
        let (at, bytes) = (attr.clone(), attr.bytes(96, "attribute").map_err(damaged)?);
        let u64_at = |at: usize| bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let clockid = bytes[92..].first_chunk().map_or(0, |b| i32::from_le_bytes(*b));
        let sample_id = SampleId::new(u64_at(24), u64_at(40))
            .map_err(|(expected, found)| (ErrorKind::Unsupported, at.misfit("attribute", expected, found)))?;
        match &found {
            None => found = Some((sample_id, record::clock(u64_at(40), clockid))),
            Some((first, _)) if first.same_place_as(&sample_id) => {}
            Some(_) => {
                let expected = "attributes that agree where time and CPU are".to_owned();
                let misfit = at.misfit("attribute", expected, "different sample types".to_owned());
                return Err((ErrorKind::Unsupported, misfit));
            }
        }
    }
    let Some((sample_id, clock)) = found else {
        return Err(damaged(attrs.misfit("attributes", "an attribute".to_owned(), "none".to_owned())));
    };
    Ok(Head { data_at, data_size, sample_id, clock })
}

fn event_types() -> Vec<EventType> {
    let event = |name: &str, fields: &[(&str, FieldType)], format: &str| EventType {
        level: Level::Kern,
        code: None,
        name: name.to_owned(),
        key: 0,
        fields: fields.iter().map(|(name, ty)| Field { name: (*name).to_owned(), ty: *ty }).collect(),
        format: format.to_owned(),
    };
    vec![
        event("perf_switch_out", &[("preempted", FieldType::Bool)], "preempted={preempted}"),
        event("perf_switch_in", &[], ""),
        event("perf_comm", &[("tid", FieldType::U32), ("comm", FieldType::Text)], "tid={tid} comm={comm}"),
        event(
            "perf_fork",
            &[("tid", FieldType::U32), ("parent_tid", FieldType::U32)],
            "tid={tid} parent_tid={parent_tid}",
        ),
        event("perf_exit", &[("tid", FieldType::U32)], "tid={tid}"),
    ]
}
