//! The command, end to end: what a person types, what comes out, with which status.

mod arenas;
mod asking;
mod awkward;
mod bad_input;
mod bpf_peers;
mod browser;
mod check;
mod check_paje;
#[cfg(feature = "cluster")]
mod cluster;
mod creators;
mod ctl;
mod descendants;
mod docs;
mod drawings;
mod export;
mod failures;
mod fleet;
mod hostile_names;
mod info;
mod kernel;
mod limited;
mod measure_memory;
mod measures;
mod measures_doc;
mod odd_paths;
mod paper;
mod perf_peers;
#[path = "../../merge/tests/it/perf_tools/recording.rs"]
mod perf_recording;
mod places;
mod python;
mod questions;
mod record;
mod rotation;
mod schemata;
mod scope;
mod selection;
mod sigmund;
#[path = "../../fut/tests/common/skipped.rs"]
mod skipped;
mod slices;
mod soak;
mod sql;
mod stops;
mod tables_doc;
mod teams;
mod tracing;
mod twice;
mod user;
mod view;
mod view_page;
mod views;
mod zoo;
