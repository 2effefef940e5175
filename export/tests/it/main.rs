//! Formats against their reference readers.

mod chrome;
mod coarse;
mod cpu_time;
mod ctf;
mod hostile;
mod known_timelines;
mod machine;
mod otf2;
mod paje;
mod paje_check;
mod paje_pj_dump;
mod paje_speed;
mod paje_vite;
mod perfetto;
mod perfetto_edges;
mod random_changes;
mod replay;
#[path = "../../../fut/tests/common/skipped.rs"]
mod skipped;
mod speed;
mod tally;
mod tools;
mod viewer;
mod waits;
