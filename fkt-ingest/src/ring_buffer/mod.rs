//! The kernel's ring buffer, as in `per_cpu/cpuN/trace_pipe_raw` and trace.dat: pages of records
//! (kernel/trace/ring_buffer.c, v6.12).
//!
//! [`page`] reads the header of a page, [`records`] iterates over its records. Neither knows what an event means.

mod page;
mod records;

pub(crate) use page::{Page, PageLayout};
pub(crate) use records::{PageItem, Records};
