//! One binary for all tests that use the crate as others do.

mod damage;
mod fixture;
mod formats;
mod generated;
mod generator;
mod hostile;
mod live;
mod perf;
mod report;
mod trace_dat;
