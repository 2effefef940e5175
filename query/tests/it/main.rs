//! Questions to super-traces.

mod active_time;
mod check;
mod listing;
mod paper;
mod reactivity;
#[path = "../../../sql/tests/it/support/mod.rs"]
mod support;
mod tracing_cost;
