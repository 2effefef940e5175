//! How the kernel declares its events: the text of `events/*/*/format`, and of `events/header_page`.
//!
//! ```text
//! name: irq_handler_entry
//! ID: 225
//! format:
//!         field:unsigned short common_type;   offset:0;  size:2; signed:0;
//!         …
//!         field:int irq;                      offset:8;  size:4; signed:1;
//!         field:__data_loc char[] name;       offset:12; size:4; signed:0;
//!
//! print fmt: "irq=%d name=%s", REC->irq, __get_str(name)
//! ```
//!
//! IDs and offsets differ between kernels, so all of them are read from this text. [`text`] parses it, [`decode`]
//! compiles it to a plan that fills an [`Event`](sigmund_model::Event), [`table`] finds the plan for an ID,
//! [`recorder`] finds the LWP that recorded a record, and [`naming`] the names of system calls and states.

mod decode;
mod machine;
mod names;
mod naming;
mod number;
mod print;
mod readable_format;
mod recorder;
mod table;
mod text;

pub(crate) use machine::Machine;
pub(crate) use names::Names;
pub(crate) use table::EventTable;
pub(crate) use text::{EventFormat, event_format, fields};
