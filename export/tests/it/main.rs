//! Formats against other people's programs that read them.

mod perfetto;
mod story;
mod tally;
mod viewer;
