//! Formats against other people's programs that read them.

mod chrome;
mod machine;
mod perfetto;
mod perfetto_edges;
mod speed;
mod story;
mod tally;
mod viewer;
