//! Formats against other people's programs that read them.

mod coarse;
mod cpu_time;
mod ctf;
mod story;
mod tally;
