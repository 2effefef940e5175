//! A super-trace as a DataFusion session: its tables, views with times in nanoseconds, and a view for each event type.
//!
//! ```no_run
//! # async fn answer() -> Result<(), sigmund_sql::Error> {
//! let trace = sigmund_sql::SuperTrace::open("demo.supertrace").await?;
//! let longest = trace.sql("SELECT thread, max(dur_ns) FROM active GROUP BY thread").await?;
//! println!("{}", longest.to_text().await?);
//! # Ok(()) }
//! ```
//!
//! | name in SQL | what it is |
//! |---|---|
//! | `events`, `active`, … | the tables of `sigmund_model::tables`; a view that adds `X_ns` beside each `X_tick` |
//! | `raw_events`, `raw_active`, … | the same tables as stored in Parquet, without nanoseconds |
//! | `event_types`, `info` | tables without ticks: no view needed |
//! | `sched_switch`, `USER_CONTEXT_SWITCH`, … | a view per event type, its declared fields as columns |
//! | `sched_slice`, `thread_state` | Perfetto's names for when an LWP ran, and for what it did |
//! | `u64_bits(n)`, `f64_bits(n)` | the unsigned or floating-point value that was stored as the bits of a number |
//!
//! Names are as written: `SELECT * FROM USER_CONTEXT_SWITCH` needs no quotes, and `EVENTS` is not `events`.
//! `_ns` of an instant counts from the first event. All `_ns` are NULL if the rate of the clock is unknown.
//!
//! Filters and measures are in `sigmund-query`.

#![forbid(unsafe_code)]

mod catalog;
mod checked_arithmetic;
mod clocks;
mod column_names;
pub mod columns;
mod declared;
mod described_function;
mod distinct_calls;
mod drawing;
mod error;
mod event_views;
mod faster_operators;
mod field_columns;
mod files;
mod fleet;
mod foreign;
pub mod functions;
mod grouping;
mod info;
pub mod intervals;
mod large_constants;
mod larger_batches;
mod lwps;
mod named_arguments;
mod nanos;
mod nearest;
mod opaque;
mod open_options;
mod opened;
mod own_views;
mod parameters;
mod perfetto;
mod query_depth;
mod reading;
mod result;
mod running;
mod session;
mod session_views;
mod sqlite_words;
mod supertrace;
mod syntax;
mod tables;
mod threads;
mod unused_join;
mod views;
mod visited;
mod whole_keys;
mod yielding;

pub use catalog::{Described, Relation, RelationKind};
pub use declared::DeclaredEvent;
pub use described_function::{DescribedArgument, DescribedFunction, describe_columns};
pub use drawing::Drawn;
pub use error::{Error, ErrorKind};
pub use faster_operators::with_faster_operators;
pub use files::{RowCondition, RowGroups, Store, StoredFile, Useful};
pub use fleet::Fleet;
pub use info::Info;
pub use lwps::{LwpNames, NamedLwp};
pub use nearest::nearest;
pub use open_options::OpenOptions;
pub use opened::Opened;
pub use parameters::Parameters;
pub use query_depth::QUERY_STACK;
pub use result::QueryResult;
pub use session_views::Defined;
pub use supertrace::SuperTrace;
pub use syntax::check_syntax;
pub use threads::ThreadNames;
pub use whole_keys::SortByWholeKeys;
