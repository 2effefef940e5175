//! Formats against other people's programs that read them.

mod paje;
mod story;
mod tally;
