//! Formats against other people's programs that read them.

mod otf2;
mod story;
mod tally;
mod tools;
