//! One binary for all tests that use the crate as others do.

mod ctf;
mod damage;
mod fixture;
mod ftrace_text;
mod fxt;
mod fxt_live;
mod fxt_made;
mod formats;
mod generated;
mod generator;
mod hostile;
mod live;
mod perf;
mod report;
mod trace_dat;
