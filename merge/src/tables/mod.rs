//! Writing the tables of a super-trace.
//!
//! ```text
//!   rows             writer.rs, events.rs    gathered as columns, batch by batch
//!    │ batches       column.rs
//!    ▼
//!   row groups       parts.rs                encoded here or by helpers, appended in the order of time
//!    │ chunks        dictionary.rs           of columns whose values are known by their places
//!    │               values.rs               of numbers and texts; chunk.rs what both share
//!    │               Arrow's writer          of ticks, and of what there is little of
//!    ▼
//!   part-00000.parquet, part-00001.parquet, …
//! ```

mod chunk;
mod column;
mod dictionary;
mod directory;
mod events;
mod hybrid;
mod parts;
mod properties;
mod values;
mod writer;

pub(crate) use directory::Directory;
pub(crate) use events::EventRows;
pub(crate) use writer::TableWriter;
