//! One binary for all tests that use the crate's public interface.

mod ctf;
mod damage;
mod fixture;
mod formats;
mod ftrace_text;
mod fxt;
mod fxt_live;
mod fxt_made;
mod generated;
mod generator;
mod hostile;
mod killed;
mod listing;
mod live;
#[path = "../../../fut/tests/common/memory.rs"]
mod memory;
mod parts;
mod perf;
mod perf_big_endian;
mod perf_damage;
mod perf_data;
mod perf_script;
mod report;
#[path = "../../../fut/tests/common/skipped.rs"]
mod skipped;
mod tiny;
mod trace_dat;
