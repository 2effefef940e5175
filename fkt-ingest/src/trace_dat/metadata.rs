//! The content of a trace.dat's header other than the declarations of events, for both versions.
//!
//! ```text
//!   an option       u16 id, u32 n, n bytes
//! ```

use sigmund_model::{Cpu, LossKind, Severity};

use super::clock::TscToNanos;
use super::file_header::FileHeader;
use super::frames::Compression;
use super::time_shift::TimeShift;
use super::tracing_data::TracingData;
use crate::cut::Cut;
use crate::error::ParseError;
use crate::losses::dropped;
use crate::ring_buffer::PageLayout;

/// Options of both versions (`TRACECMD_OPTION_*`, trace-cmd 3.1.6).
pub(crate) mod option {
    pub(crate) const DONE: u16 = 0;
    pub(super) const DATE: u16 = 1;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(super) const OFFSET: u16 = 7;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(super) const TRACEID: u16 = 11;
    pub(super) const TIME_SHIFT: u16 = 12;
    pub(super) const GUEST: u16 = 13;
    pub(super) const TSC2NSEC: u16 = 14;
}

/// Largest number of CPUs of all buffers together. No machine has that many; a damaged file may.
pub(crate) const MAX_REGIONS: usize = 1 << 16;

/// Everything but the events.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) tracing: TracingData,
    pub(super) compression: Compression,
    pub(super) clock: Option<String>,
    pub(super) uname: Option<String>,
    pub(super) writer: Option<String>,
    pub(super) cpu_count: Option<u32>,
    pub(super) cpu_stats: Vec<String>,
    pub(super) trace_id: Option<u64>,
    /// Names of guests, and the trace ids of their files.
    pub(super) guests: Vec<(String, u64)>,
    /// Nanoseconds to add to each time.
    pub(super) time_offset: i64,
    /// Whether the offset converts the times to the wall clock (`--date`).
    pub(super) dated: bool,
    pub(super) time_shift: Option<TimeShift>,
    pub(super) tsc_to_nanos: Option<TscToNanos>,
    pub(super) buffers: Vec<Buffer>,
}

/// One buffer: the top one, or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Empty for the top buffer.
    pub(super) name: String,
    pub(super) clock: Option<String>,
    pub(super) page_size: u64,
    pub(super) compression: Compression,
    pub(super) regions: Vec<Region>,
}

/// The position of one CPU's pages in the file. Neither number has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) cpu: Cpu,
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Metadata {
    pub(super) fn new(name: String, head: &FileHeader) -> Metadata {
        let layout = PageLayout::of_kernel(head.order, head.long_size);
        let layout = layout.with_page_size(u64::from(head.page_size));
        Metadata { tracing: TracingData::new(name, layout), ..Metadata::default() }
    }

    /// Records that a part of the header could not be read.
    pub(super) fn note_loss(&mut self, kind: LossKind, severity: Severity, parse_error: &ParseError) {
        self.tracing.note_loss(kind, severity, parse_error);
    }

    /// Reads an option of both versions. Others are skipped: `id` may be any number.
    pub(super) fn option(&mut self, id: u16, mut cut: Cut<'_>) -> Result<(), ParseError> {
        match id {
            option::CPUSTAT => self.cpu_stat(text_option(&cut)),
            option::TRACECLOCK => self.clock = selected_clock(&text_option(&cut)),
            option::UNAME => self.uname = Some(text_option(&cut)),
            option::VERSION => self.writer = Some(text_option(&cut)),
            // `0x…` microseconds.
            option::DATE => {
                self.add_time_offset(signed_number(&text_option(&cut)).map(|us| us.wrapping_mul(1000)));
                self.dated = true;
            }
            option::OFFSET => self.add_time_offset(signed_number(&text_option(&cut))),
            option::TRACEID => self.trace_id = Some(cut.u64("TRACEID")?),
            option::TIME_SHIFT => self.time_shift = Some(TimeShift::parse(&mut cut)?),
            option::GUEST => self.guests.push((cut.text("GUEST")?, cut.u64("GUEST")?)),
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

    fn add_time_offset(&mut self, nanos: Option<i64>) {
        self.time_offset = self.time_offset.wrapping_add(nanos.unwrap_or(0));
    }

    /// `overrun` is also marked on the pages; events that a discarding buffer dropped are counted only here.
    fn cpu_stat(&mut self, text: String) {
        let number = |key: &str| -> Option<u64> {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(key))?;
            line.trim_start_matches(':').trim().parse().ok()
        };
        if let Some(cpu) = number("CPU").and_then(|cpu| u32::try_from(cpu).ok()) {
            for key in ["dropped events", "commit overrun"] {
                if let Some(count @ 1..) = number(key) {
                    self.tracing.add_loss(dropped(Cpu(cpu), None, None, Some(count)));
                }
            }
        }
        if !text.is_empty() {
            self.cpu_stats.push(text);
        }
    }
}

/// As C's `strtoll` parses it: `-12`, `0x1f`.
fn signed_number(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => digits.parse().ok()?,
    };
    Some(if negative { number.wrapping_neg() } else { number })
}

fn text_option(cut: &Cut<'_>) -> String {
    String::from_utf8_lossy(cut.rest()).trim_end_matches(['\0', '\n']).to_owned()
}

/// `local global [x86-tsc]` → `x86-tsc`.
pub(super) fn selected_clock(text: &str) -> Option<String> {
    let (clock, _) = text.split_once('[')?.1.split_once(']')?;
    Some(clock.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_decimal_or_hexadecimal_and_signed() {
        assert_eq!(signed_number("-1500"), Some(-1500));
        assert_eq!((signed_number("0x10\n"), signed_number("soon")), (Some(16), None));
    }
}
