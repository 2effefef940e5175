//! One binary for all tests that use the crate as others do.

mod damage;
mod fixture;
mod live;
mod perf;
mod perf_big_endian;
mod perf_damage;
mod perf_data;
mod perf_script;
mod report;
mod trace_dat;
