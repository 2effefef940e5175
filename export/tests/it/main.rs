//! Formats against other people's programs that read them.

mod story;
mod tally;
