//! Writing the tables of a super-trace.
//!
//! ```text
//!   rows             writer.rs, events.rs    gathered as columns, batch by batch
//!    │ batches       column.rs
//!    ▼
//!   row groups       parts.rs                encoded (dictionary.rs, or Arrow's writer) here or by
//!    │                                     helpers, appended in the order of time
//!    ▼
//!   part-00000.parquet, part-00001.parquet, …
//! ```

mod column;
mod dictionary;
mod directory;
mod events;
mod hybrid;
mod parts;
mod properties;
mod writer;

pub(crate) use directory::Directory;
pub(crate) use events::EventRows;
pub(crate) use writer::TableWriter;
