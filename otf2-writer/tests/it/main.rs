//! The writer, against libotf2's writer and a reader.

mod example;
mod reference;
mod refusals;
#[path = "../../../fut/tests/common/skipped.rs"]
mod skipped;
mod tools;
