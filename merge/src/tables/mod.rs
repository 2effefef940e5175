//! Writing the tables of a super-trace.
//!
//! ```text
//!   rows             writer.rs, events.rs    gathered as columns, batch by batch
//!    │ batches       column.rs
//!    ▼
//!   row groups       parts.rs, encoder.rs    encoded here or by helpers, appended in the order of time
//!    │ chunks        dictionary.rs           of columns whose values are known by their places
//!    │               values.rs, places.rs    of numbers and texts
//!    │               differences.rs          of ticks
//!    │               bools.rs                of yes or no; chunk.rs what all of these share
//!    │ bytes         levels.rs, hybrid.rs    what is there, and small numbers
//!    │               bits.rs, packing.rs, varint.rs
//!    ▼
//!   part-00000.parquet, part-00001.parquet, …
//! ```

mod bits;
mod bools;
mod chunk;
mod column;
mod dictionary;
mod differences;
mod directory;
mod encoder;
mod events;
mod hybrid;
mod levels;
mod packing;
mod parts;
mod places;
mod properties;
#[cfg(test)]
mod there_and_back;
mod values;
mod varint;
mod writer;

pub(crate) use directory::Directory;
pub(crate) use events::EventRows;
pub(crate) use writer::TableWriter;
