//! Merges of small inputs, whose super-traces are known: worked out on paper, simulated, or found by other tools.

mod clocks;
mod far_ticks;
mod listing;
mod pairing;
mod parts;
mod perf_tools;
mod processes;
mod recorded_spans;
mod supertrace;
mod symbols;
mod threads;
mod truth;
mod user_trace;
mod witnesses;
