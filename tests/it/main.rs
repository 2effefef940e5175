//! The command, end to end: what a person types, what comes out, with which status.

mod arenas;
mod bad_input;
mod check;
mod ctl;
mod export;
mod hostile_names;
mod info;
mod kernel;
mod paper;
mod places;
mod questions;
mod record;
mod scope;
mod sigmund;
#[path = "../../fut/tests/common/skipped.rs"]
mod skipped;
mod soak;
mod stops;
mod teams;
mod tracing;
mod twice;
mod user;
mod zoo;
