//! Formats against other people's programs that read them.

mod coarse;
mod ctf;
mod story;
mod tally;
