//! FxT's traces: `prof_file_*` of programs with FUT probes (StarPU, PM2), and recordings of the kernel by `fkt_record`
//! (libfxt 0.3.13).
//!
//! ```text
//!   | u32 machine | block | block | …        the machine is big endian; the rest has its byte order
//!
//!   0        8          12            16                  size
//!   | size   | s32 type | s32 subtype | content           |      size 0: to the end of the file
//!
//!   INFOS 1 holds blocks: TIME, IRQS, UNAME, ADDRS, PIDS                       see [`infos`]
//!   0x100 KERNEL_RAW32   0x101 KERNEL_RAW64   0x200 USER_RAW32   0x201 USER_RAW64    see [`records`]
//! ```
//! An event is a number, and the file does not declare its meaning: the codes of libfxt and PM2 are built in
//! ([`codes`]), others can be named by the user ([`EventNames`]). All records, of all CPUs, are in one stream, because
//! a file has one buffer and most records do not have the CPU.

mod blocks;
mod clock;
mod codes;
mod infos;
mod lwp_tracker;
mod record_stream;
mod records;
mod reorder_window;
mod types;
mod words;

use std::sync::Arc;

use sigmund_model::{ClockDomain, EventType, Hertz, Level, Loss, LossKind, Lwp, Severity};

use self::blocks::{Blocks, RecordBlock};
use self::clock::{Clock, Span};
use self::infos::Infos;
use self::lwp_tracker::NewLwp;
use self::record_stream::FxtStream;
use self::records::{FileItem, Records};
use self::types::{CodesSeen, FxtTypes};
use crate::cut::ByteOrder;
use crate::error::{Error, ErrorKind, ParseError};
use crate::event_names::EventNames;
use crate::input::Input;
use crate::trace_file::{TraceFile, TraceStream};

/// Page size of kernel traces, if the file does not have it.
const USUAL_PAGE: usize = 4096;

/// The largest page size that is accepted: 64 KiB is the largest of Linux.
const MAX_PAGE: usize = 1 << 16;

/// An open FxT trace.
#[derive(Debug)]
pub struct Fxt {
    shared: Arc<FxtData>,
    clock: Clock,
    lwp_names: Vec<(Lwp, String)>,
    losses: Vec<Loss>,
}

/// Data that its streams share.
#[derive(Debug)]
struct FxtData {
    input: Input,
    machine: &'static str,
    order: ByteOrder,
    infos: Infos,
    blocks: Vec<RecordBlock>,
    types: FxtTypes,
}

/// The result of a pass over all records.
#[derive(Debug)]
struct Survey {
    codes: CodesSeen,
    span: Option<Span>,
    /// Numbers of LWPs without the kernel's id.
    numbered: Vec<u64>,
}

impl Fxt {
    /// Whether a file with this beginning is an FxT trace: 36 bytes are enough.
    pub fn is_fxt(head: &[u8]) -> bool {
        blocks::machine(head).is_some()
    }

    pub(crate) fn read(input: Input, names: &EventNames) -> Result<Fxt, Error> {
        let Some(Blocks { machine, order, infos, records, parse_errors }) = Blocks::find(input.bytes())
        else {
            let (expected, found) = ("an FxT trace".to_owned(), "something else".to_owned());
            let parse_error = ParseError { at: 0, part: "header", expected, found };
            return Err(Error::at(ErrorKind::NotThisFormat, input.path(), parse_error));
        };
        let mut losses: Vec<Loss> =
            parse_errors.iter().map(|parse_error| loss_of(&input, parse_error)).collect();
        if records.is_empty() {
            let (expected, found) = ("a block of records".to_owned(), "none".to_owned());
            losses.push(loss_of(&input, &ParseError { at: input.len(), part: "blocks", expected, found }));
        }
        let survey = survey(input.bytes(), Records::new(order, page_size(&infos), &records));
        let types = FxtTypes::new(survey.codes, names);
        if types.beyond() > 0 {
            let detail = format!(
                "{}: {} events with further codes after the first 4096",
                input.name(),
                types.beyond()
            );
            let loss = Loss { severity: Severity::Note, ..Loss::new(LossKind::Damaged, Level::User, detail) };
            losses.push(Loss { count: Some(types.beyond()), ..loss });
        }
        let clock = clock::decide(infos.time.as_ref(), survey.span);
        let lwp_names = lwp_names(&infos, &survey.numbered);
        let shared = FxtData { input, machine, order, infos, blocks: records, types };
        Ok(Fxt { shared: Arc::new(shared), clock, lwp_names, losses })
    }
}

impl FxtData {
    fn records(&self) -> Records {
        Records::new(self.order, page_size(&self.infos), &self.blocks)
    }
}

fn page_size(infos: &Infos) -> usize {
    let stated = infos.time.as_ref().map(|time| time.page_size as usize);
    stated.filter(|size| (64..=MAX_PAGE).contains(size)).unwrap_or(USUAL_PAGE)
}

fn survey(file: &[u8], mut records: Records) -> Survey {
    let order = records.order();
    let mut survey = Survey { codes: CodesSeen::new(), span: None, numbered: Vec::new() };
    loop {
        let head = match records.next(file) {
            FileItem::Record(head) => head,
            FileItem::Skipped(..) => continue,
            FileItem::End => return survey,
        };
        survey.codes.add(&head);
        let narrow = head.kernel;
        survey.span.get_or_insert(Span { first: head.tick, last: head.tick, narrow }).last = head.tick;
        if head.code == codes::FUT_NEW_LWP
            && !head.kernel
            && let Some((number, carries)) = head.args.get(file, order, 0).zip(head.args.get(file, order, 1))
            && let NewLwp::Numbered { number, .. } = NewLwp::of(head.id, number, carries)
            && survey.numbered.len() < 1 << 16
        {
            survey.numbered.push(number);
        }
    }
}

/// The names in the file, and names for LWPs that it only numbers.
fn lwp_names(infos: &Infos, numbered: &[u64]) -> Vec<(Lwp, String)> {
    let process = infos.time.as_ref().map(|time| time.record_pid).filter(|pid| *pid > 0);
    let mut names = infos.lwp_names.clone();
    for number in numbered {
        let lwp = lwp_tracker::numbered(*number, process).filter(|lwp| lwp.0 >= lwp_tracker::FIRST_NUMBERED);
        names.extend(lwp.map(|lwp| (lwp, format!("LWP number {number}"))));
    }
    names
}

fn loss_of(input: &Input, parse_error: &ParseError) -> Loss {
    let kind = if parse_error.at >= input.len() { LossKind::Truncated } else { LossKind::Damaged };
    Loss::new(kind, Level::User, format!("{}: {parse_error}", input.name()))
}

impl TraceFile for Fxt {
    fn format(&self) -> String {
        let bits = match self.shared.blocks.first().map(|block| block.layout) {
            Some(blocks::Layout::Kernel32) => ", kernel, 32 bits",
            Some(blocks::Layout::Kernel64) => ", kernel, 64 bits",
            Some(blocks::Layout::User32) => ", user, 32 bits",
            Some(blocks::Layout::User64) => ", user, 64 bits",
            None => "",
        };
        format!("FxT of {}{bits}", self.shared.machine)
    }

    fn event_types(&self) -> &[EventType] {
        &self.shared.types.declared
    }

    fn streams(&self) -> Vec<TraceStream> {
        let events = Box::new(FxtStream::new(Arc::clone(&self.shared)));
        vec![TraceStream { clock: self.clock.domain, cpu: None, buffer: String::new(), events }]
    }

    /// Names from the block PIDS: those of processes, when the recording was written.
    fn lwp_names(&self) -> &[(Lwp, String)] {
        &self.lwp_names
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn tick_hz(&self) -> Option<Hertz> {
        self.clock.hz.filter(|_| self.clock.domain == ClockDomain::Tsc)
    }

    fn facts(&self) -> Vec<(String, String)> {
        let infos = &self.shared.infos;
        let mut facts = vec![("machine".to_owned(), self.shared.machine.to_owned())];
        let mut fact = |key: &str, value: String| facts.push((key.to_owned(), value));
        fact("clock_evidence", format!("{}: {}", self.clock.domain.name(), self.clock.because));
        if let Some(uname) = &infos.uname {
            fact("uname", uname.clone());
        }
        if let Some(time) = &infos.time {
            fact("space", if time.space == 0 { "kernel".to_owned() } else { "user".to_owned() });
            fact("cpus", time.cpus.to_string());
            fact("mhz", time.mhz.to_string());
            fact("record_pid", time.record_pid.to_string());
            fact("traced_pid", time.traced_pid.to_string());
            fact("start_unix_s", time.start.to_string());
            fact("stop_unix_s", time.stop.to_string());
            fact("page_size", time.page_size.to_string());
        }
        for (number, name) in &infos.irqs {
            fact(&format!("irq_{number}"), name.clone());
        }
        facts
    }
}
