//! The declarations of events: the same bytes in a trace.dat of either version and in a perf.data (`TRACING_DATA`).
//!
//! ```text
//!   header info     "header_page\0" u64 n, n bytes of text; "header_event\0" u64 n, n bytes
//!   ftrace events   u32 count; each u64 n, n bytes of format text
//!   events          u32 systems; each: name\0, u32 count; each u64 n, n bytes of format text
//!   kallsyms        u32 n, n bytes: lines "address type name"
//!   printk formats  u32 n, n bytes: lines "address : "text""
//!   saved cmdlines  u64 n, n bytes: lines "pid comm"
//! ```
//!
//! Version 6 and perf.data have these parts in this order; version 7 has a section for each.

use sigmund_model::{Loss, LossKind, Lwp, Severity};

use crate::cut::Cut;
use crate::error::ParseError;
use crate::format::{self, EventFormat, EventTable, Machine, Names};
use crate::losses::kernel_loss;
use crate::ring_buffer::PageLayout;

/// Largest number of loss rows of one header: a damaged file could have millions.
const MAX_LOSSES: usize = 10_000;

/// The declarations, and the names of numbers that the events contain.
#[derive(Debug, Default)]
pub(crate) struct TracingData {
    pub(crate) layout: PageLayout,
    pub(crate) formats: Vec<EventFormat>,
    pub(crate) kallsyms: String,
    pub(crate) printk_formats: String,
    pub(crate) lwp_names: Vec<(Lwp, String)>,
    pub(crate) losses: Vec<Loss>,
    /// The file's name, for messages.
    pub(crate) name: String,
}

impl TracingData {
    /// Empty data of the file `name`, recorded on a machine with this page layout.
    pub(crate) fn new(name: String, layout: PageLayout) -> TracingData {
        TracingData { name, layout, ..TracingData::default() }
    }

    /// Reads all parts except the saved command lines. What was read before an error is kept.
    pub(crate) fn read_all(&mut self, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        self.header_info(cut)?;
        self.ftrace_events(cut)?;
        self.events(cut)?;
        self.kallsyms(cut)?;
        self.printk_formats(cut)
    }

    /// All declared events. Numbers of system calls are those of x86-64, or unknown.
    pub(crate) fn table(&self, is_x86_64: bool) -> EventTable {
        let machine = Machine { order: self.layout.order, long_size: self.layout.long_size, is_x86_64 };
        EventTable::new(&self.formats, machine).with_names(Names::parse(&self.kallsyms, &self.printk_formats))
    }

    /// Records that a part could not be read.
    pub(crate) fn note_loss(&mut self, kind: LossKind, severity: Severity, parse_error: &ParseError) {
        self.add_loss(kernel_loss(kind, severity, None, format!("{}: {parse_error}", self.name)));
    }

    pub(crate) fn add_loss(&mut self, loss: Loss) {
        if self.losses.len() < MAX_LOSSES {
            self.losses.push(loss);
        } else if self.losses.len() == MAX_LOSSES {
            let detail = format!("{}: further losses in the header are not listed", self.name);
            self.losses.push(kernel_loss(LossKind::Damaged, Severity::Serious, None, detail));
        }
    }

    pub(crate) fn header_info(&mut self, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        cut.tag(b"header_page\0", "header_page")?;
        let before = cut.clone();
        let text = sized_text(cut, "header_page")?;
        match PageLayout::parse(&text, cut.order()) {
            Ok(layout) => self.layout = layout,
            // Kernels before 2.6.31 do not have this file.
            Err(_) if text.is_empty() => {}
            Err(found) => {
                let parse_error = before.parse_error("header_page", "the layout of a page".to_owned(), found);
                self.note_loss(LossKind::Damaged, Severity::Serious, &parse_error);
            }
        }
        cut.tag(b"header_event\0", "header_event")?;
        sized_text(cut, "header_event")?;
        Ok(())
    }

    pub(crate) fn ftrace_events(&mut self, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        for _ in 0..cut.u32("number of ftrace events")? {
            self.event_format(cut, "ftrace")?;
        }
        Ok(())
    }

    pub(crate) fn events(&mut self, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        for _ in 0..cut.u32("number of event systems")? {
            let system = cut.text("name of an event system")?;
            for _ in 0..cut.u32("number of events of a system")? {
                self.event_format(cut, &system)?;
            }
        }
        Ok(())
    }

    /// One declaration. If it cannot be read, only its records are affected: they become `unknown`.
    fn event_format(&mut self, cut: &mut Cut<'_>, system: &str) -> Result<(), ParseError> {
        let before = cut.clone();
        match format::event_format(&sized_text(cut, "event format")?) {
            Ok(format) => self.formats.push(EventFormat { system: system.to_owned(), ..format }),
            Err(found) => {
                let expected = "the declaration of an event".to_owned();
                let parse_error = before.parse_error("event format", expected, format!("{found:?}"));
                self.note_loss(LossKind::Damaged, Severity::Gap, &parse_error);
            }
        }
        Ok(())
    }

    pub(crate) fn kallsyms(&mut self, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        let size = u64::from(cut.u32("kallsyms")?);
        self.kallsyms = lossy(cut.bytes(size, "kallsyms")?);
        Ok(())
    }

    pub(crate) fn printk_formats(&mut self, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        let size = u64::from(cut.u32("printk formats")?);
        self.printk_formats = lossy(cut.bytes(size, "printk formats")?);
        Ok(())
    }

    pub(crate) fn cmdlines(&mut self, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        let text = sized_text(cut, "saved command lines")?;
        let names = text.lines().filter_map(|line| line.trim_start().split_once(' '));
        let names = names.filter_map(|(pid, comm)| Some((Lwp(pid.parse().ok()?), comm.to_owned())));
        self.lwp_names.extend(names);
        Ok(())
    }
}

/// u64 n, n bytes of text.
fn sized_text(cut: &mut Cut<'_>, part: &'static str) -> Result<String, ParseError> {
    let size = cut.u64(part)?;
    Ok(lossy(cut.bytes(size, part)?))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
