//! The command, end to end: what a person types, what comes out, with which status.

mod bad_input;
mod check;
mod ctl;
mod export;
mod info;
mod kernel;
mod paper;
mod questions;
mod record;
mod scope;
mod sigmund;
mod teams;
mod tracing;
