//! What the head of a trace.dat holds, whichever version: each part is the same bytes in both.
//!
//! ```text
//!   header info     "header_page\0" u64 n, n bytes of text; "header_event\0" u64 n, n bytes
//!   ftrace events   u32 count; each u64 n, n bytes of format text
//!   events          u32 systems; each: name\0, u32 count; each u64 n, n bytes of format text
//!   kallsyms        u32 n, n bytes          (not used)
//!   printk formats  u32 n, n bytes          (not used)
//!   saved cmdlines  u64 n, n bytes: lines "pid comm"
//!   an option       u16 id, u32 n, n bytes
//! ```

use sigmund_model::{Cpu, Loss, LossKind, Lwp, Severity};

use super::TscToNanos;
use crate::cut::Cut;
use crate::error::Misfit;
use crate::format::{self, EventFormat};
use crate::losses::{dropped, kernel_loss};
use crate::ring_buffer::PageLayout;

/// Options that both versions have (`TRACECMD_OPTION_*`, trace-cmd 3.1.6).
pub(crate) mod option {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(super) const TSC2NSEC: u16 = 14;
}

/// Everything but the events.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) layout: PageLayout,
    pub(super) formats: Vec<EventFormat>,
    pub(super) lwp_names: Vec<(Lwp, String)>,
    pub(super) clock: Option<String>,
    pub(super) uname: Option<String>,
    pub(super) writer: Option<String>,
    pub(super) cpu_count: Option<u32>,
    pub(super) cpu_stats: Vec<String>,
    pub(super) tsc_to_nanos: Option<TscToNanos>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) losses: Vec<Loss>,
    /// The file's name, for the text of losses.
    pub(super) name: String,
}

/// One buffer: the top one, or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Empty for the top buffer.
    pub(super) name: String,
    pub(super) clock: Option<String>,
    pub(super) page_size: u64,
    pub(super) compressed: bool,
    pub(super) regions: Vec<Region>,
}

/// Where the pages of one CPU are in the file. Neither number is checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) cpu: Cpu,
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Metadata {
    pub(super) fn new(name: String, page_size: u32) -> Metadata {
        let layout = PageLayout::default().with_page_size(u64::from(page_size));
        Metadata { name, layout, ..Metadata::default() }
    }

    /// Notes a part of the head that could not be read.
    pub(super) fn lose(&mut self, kind: LossKind, severity: Severity, misfit: &Misfit) {
        self.losses.push(kernel_loss(kind, severity, None, format!("{}: {misfit}", self.name)));
    }

    pub(super) fn header_info(&mut self, cut: &mut Cut<'_>) -> Result<(), Misfit> {
        cut.tag(b"header_page\0", "header_page")?;
        let before = cut.clone();
        let text = sized_text(cut, "header_page")?;
        match PageLayout::parse(&text) {
            Ok(layout) => self.layout = layout,
            Err(found) => {
                let misfit = before.misfit("header_page", "a page of a 64-bit kernel".to_owned(), found);
                self.lose(LossKind::Damaged, Severity::Serious, &misfit);
            }
        }
        cut.tag(b"header_event\0", "header_event")?;
        sized_text(cut, "header_event")?;
        Ok(())
    }

    pub(super) fn ftrace_events(&mut self, cut: &mut Cut<'_>) -> Result<(), Misfit> {
        for _ in 0..cut.u32("number of ftrace events")? {
            self.event_format(cut)?;
        }
        Ok(())
    }

    pub(super) fn events(&mut self, cut: &mut Cut<'_>) -> Result<(), Misfit> {
        for _ in 0..cut.u32("number of event systems")? {
            cut.text("name of an event system")?;
            for _ in 0..cut.u32("number of events of a system")? {
                self.event_format(cut)?;
            }
        }
        Ok(())
    }

    /// One declaration. One that cannot be read costs itself: its records become `unknown`.
    fn event_format(&mut self, cut: &mut Cut<'_>) -> Result<(), Misfit> {
        let before = cut.clone();
        match format::event_format(&sized_text(cut, "event format")?) {
            Ok(format) => self.formats.push(format),
            Err(found) => {
                let expected = "the declaration of an event".to_owned();
                let misfit = before.misfit("event format", expected, format!("{found:?}"));
                self.lose(LossKind::Damaged, Severity::Gap, &misfit);
            }
        }
        Ok(())
    }

    pub(super) fn cmdlines(&mut self, cut: &mut Cut<'_>) -> Result<(), Misfit> {
        let text = sized_text(cut, "saved command lines")?;
        let names = text.lines().filter_map(|line| line.trim_start().split_once(' '));
        let names = names.filter_map(|(pid, comm)| Some((Lwp(pid.parse().ok()?), comm.to_owned())));
        self.lwp_names.extend(names);
        Ok(())
    }

    /// An option that both versions have. Others are skipped: `id` is any number.
    pub(super) fn option(&mut self, id: u16, mut cut: Cut<'_>) -> Result<(), Misfit> {
        match id {
            option::CPUSTAT => self.cpu_stat(text_option(&cut)),
            option::TRACECLOCK => self.clock = selected_clock(&text_option(&cut)),
            option::UNAME => self.uname = Some(text_option(&cut)),
            option::VERSION => self.writer = Some(text_option(&cut)),
            option::CPUCOUNT => self.cpu_count = Some(cut.u32("CPUCOUNT")?),
            option::TSC2NSEC => {
                let (mult, shift) = (cut.u32("TSC2NSEC mult")?, cut.u32("TSC2NSEC shift")?);
                let offset = cut.u64("TSC2NSEC offset")?;
                self.tsc_to_nanos = Some(TscToNanos { mult, shift, offset });
            }
            _ => {}
        }
        Ok(())
    }

    /// `overrun` is marked on the pages themselves; what a discarding buffer dropped is counted only here.
    fn cpu_stat(&mut self, text: String) {
        let number = |key: &str| -> Option<u64> {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(key))?;
            line.trim_start_matches(':').trim().parse().ok()
        };
        if let Some(cpu) = number("CPU").and_then(|cpu| u32::try_from(cpu).ok()) {
            for key in ["dropped events", "commit overrun"] {
                if let Some(count @ 1..) = number(key) {
                    self.losses.push(dropped(Cpu(cpu), None, None, Some(count)));
                }
            }
        }
        self.cpu_stats.push(text);
    }
}

/// u64 n, n bytes of text.
fn sized_text(cut: &mut Cut<'_>, part: &'static str) -> Result<String, Misfit> {
    let size = cut.u64(part)?;
    Ok(String::from_utf8_lossy(cut.bytes(size, part)?).into_owned())
}

fn text_option(cut: &Cut<'_>) -> String {
    String::from_utf8_lossy(cut.rest()).trim_end_matches(['\0', '\n']).to_owned()
}

/// `local global [x86-tsc]` → `x86-tsc`.
pub(super) fn selected_clock(text: &str) -> Option<String> {
    let (clock, _) = text.split_once('[')?.1.split_once(']')?;
    Some(clock.to_owned())
}
