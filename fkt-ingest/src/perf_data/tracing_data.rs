//! The declarations of tracepoints within a perf.data (tools/perf/util/trace-event-info.c, v6.1): those of a trace.dat
//! of version 6, after a header of its own.
//!
//! ```text
//!   | 17 08 44 "tracing" | "0.6\0" | endian u8 | long size u8 | page size u32 | header_page … printk formats |
//! ```

use sigmund_model::{LossKind, Severity};

use crate::cut::{ByteOrder, Cut};
use crate::error::ParseError;
use crate::ring_buffer::PageLayout;
use crate::trace_dat::{MAGIC, TracingData};

/// Reads the declarations in the file `name`. What was read before an error is kept, and the error becomes a loss.
pub(super) fn parse(bytes: &[u8], name: &str) -> Result<TracingData, ParseError> {
    let mut cut = Cut::new(bytes, 0);
    cut.tag(MAGIC, "tracing data")?;
    cut.text("version of the tracing data")?;
    let order =
        if cut.u8("byte order of the tracing data")? == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let before = cut.clone();
    let long_size = cut.u8("size of a long")?;
    if !matches!(long_size, 4 | 8) {
        return Err(before.parse_error("size of a long", "4 or 8".to_owned(), long_size.to_string()));
    }
    let mut cut = cut.with_order(order);
    cut.u32("page size")?;
    let mut data = TracingData::new(name.to_owned(), PageLayout::of_kernel(order, long_size));
    if let Err(parse_error) = data.read_all(&mut cut) {
        data.note_loss(LossKind::Damaged, Severity::Serious, &parse_error);
    }
    Ok(data)
}
