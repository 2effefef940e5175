//! The declarations of tracepoints within a perf.data (tools/perf/util/trace-event-info.c, v6.1).
//!
//! ```text
//!   | 17 08 44 "tracing" | "0.6\0" | endian u8 | long size u8 | page size u32 |
//!   | "header_page\0" u64 n, n bytes | "header_event\0" u64 n, n bytes |
//!   | u32 count of ftrace's own events; each u64 n, n bytes of format text |
//!   | u32 systems; each: name\0, u32 count; each u64 n, n bytes of format text |
//!   | kallsyms, printk formats, saved command lines: not used |
//! ```

use super::fields::{ByteOrder, Fields};
use crate::format::{self, EventFormat};

/// What of it is used.
#[derive(Debug)]
pub(super) struct TracingData {
    pub(super) formats: Vec<EventFormat>,
    pub(super) order: ByteOrder,
    /// Texts that are no declaration: where each stops being one.
    pub(super) unreadable: Vec<String>,
}

/// Reads the declarations. `Err` says where it ends early; then none is to be trusted.
pub(super) fn parse(bytes: &[u8]) -> Result<TracingData, String> {
    let rest = bytes.strip_prefix(b"\x17\x08\x44tracing").ok_or("another magic than 17 08 44 tracing")?;
    let mut head = Fields::new(rest, ByteOrder::Little);
    let endian = head.line().and_then(|_version| head.bytes(1)).ok_or("the end of the file in its head")?;
    let order = if endian == [0] { ByteOrder::Little } else { ByteOrder::Big };
    let mut data = TracingData { formats: Vec::new(), order, unreadable: Vec::new() };
    let end = |part: &str| format!("the end of it in {part}");
    let mut fields = Fields::new(head.rest(), order);
    // u8 long size, u32 page size
    fields.bytes(5).ok_or_else(|| end("its head"))?;
    for _ in ["header_page", "header_event"] {
        fields.line().and_then(|_| sized(&mut fields)).ok_or_else(|| end("header_page or header_event"))?;
    }
    let count = fields.u32().ok_or_else(|| end("ftrace's events"))?;
    data.declarations(count, &mut fields).ok_or_else(|| end("ftrace's events"))?;
    data.systems(&mut fields).ok_or_else(|| end("the events"))?;
    Ok(data)
}

impl TracingData {
    fn systems(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        for _ in 0..fields.u32()? {
            fields.line()?;
            let count = fields.u32()?;
            self.declarations(count, fields)?;
        }
        Some(())
    }

    fn declarations(&mut self, count: u32, fields: &mut Fields<'_>) -> Option<()> {
        for _ in 0..count {
            match format::event_format(&String::from_utf8_lossy(sized(fields)?)) {
                Ok(format) => self.formats.push(format),
                Err(found) => self.unreadable.push(format!("{found:?}")),
            }
        }
        Some(())
    }
}

/// `u64 n`, n bytes.
fn sized<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let size = fields.u64()?;
    fields.bytes(size)
}
