//! Compares the writer with libotf2's writer, and reads its output with `otf2-print`.

mod example;
mod reference;
mod refusals;
#[path = "../../../fut/tests/common/skipped.rs"]
mod skipped;
mod tools;
