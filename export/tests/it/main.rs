//! Formats against other people's programs that read them.

mod ctf;
mod story;
mod tally;
