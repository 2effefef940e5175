//! Formats against other people's programs that read them.

mod otf2;
mod paje;
mod paje_story;
mod story;
mod tally;
mod tools;
