//! Sigmund's filters and measures, as plans on a super-trace's session.
//!
//! ```no_run
//! use sigmund_query::{Filter, Format, active_time, list};
//!
//! # async fn answer() -> Result<(), Box<dyn std::error::Error>> {
//! let trace = sigmund_sql::SuperTrace::open("demo.supertrace").await?;
//! let filter = Filter { threads: vec!["15".parse()?], events: vec!["CONTEXT_SWITCH".parse()?], ..Filter::default() };
//! let rows = list(&trace, &filter, Format::Human, &mut std::io::stdout()).await?;
//! let who = Filter { threads: filter.threads, ..Filter::default() };
//! println!("{rows} events, {} cycles", active_time(&trace, &who).await?[0].active.0);
//! # Ok(()) }
//! ```
//!
//! | what | answers |
//! |---|---|
//! | [`Filter`] | which threads, LWPs, CPUs, events, side, time |
//! | [`list`], [`list_events`] | what happened, in the order of time |
//! | [`active_time`] | how long each user thread really executed |
//! | [`reactivity`] | how long from an event to its treatment |
//! | [`tracing_cost`] | what recording the program's own events cost it |
//! | [`measure`] | any measure of `sigmund-measures`; [`register_measures`] makes them table functions of SQL |
//! | [`compare_traces`] | two super-traces in the same measure |
//! | [`check`] | whether the invariants of the super-trace hold |
//!
//! Values of users reach a plan as literals, never as SQL text. The library prints nothing.

#![forbid(unsafe_code)]

mod active_time;
mod check;
mod error;
mod filter;
mod listing;
mod measured;
mod reactivity;
mod tracing_cost;

pub use active_time::{ActiveTime, active_time};
pub use check::{
    Cause, Clock, Disagreement, Figure, Gap, Item, Listed, LossSource, LwpTime, LwpWitnesses, Neighbour,
    Neighbourhood, Report, Stay, Touched, Trust, Verdict, check,
};
pub use error::{Error, ErrorKind};
pub use filter::{
    EventPattern, Filter, Instant, LwpList, LwpRef, Numbered, ProcessList, ProcessRef, Reference,
    ReferenceList, SelectedLwps, ThreadList, ThreadRef, Window, number_in,
};
pub use listing::{EventBatch, EventRow, EventRows, Format, Listing, list, list_events};
pub use measured::{
    Asked, Elsewhere, Made, MeasureNote, MeasureOptions, Measured, OfHost, OfHosts, compare_traces,
    count_gaps, gaps_note, measure, measure_arguments, measure_columns, measure_elsewhere, measure_functions,
    measure_hosts, register_measures, register_measures_noting, to_batch, with_history,
};
#[doc(hidden)]
pub use measured::{SliceSize, measure_in_slices};
pub use reactivity::{Moment, Pair, Reactivity, Selector, nearest_values, reactivity};
pub use tracing_cost::{Recorder, RecorderCost, TracingCost, share, tracing_cost};
