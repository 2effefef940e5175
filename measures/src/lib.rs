//! What each measure means: answers about user threads, LWPs and CPUs, from intervals in memory.
//!
//! No I/O and no query engine here: a [`History`] holds what the tables of a super-trace say, a [`Request`] who and when, and
//! each [`Measure`] makes an [`Answer`] of them. `sigmund-query` loads histories and offers every measure to SQL; the command
//! prints answers. Every length is ticks, exact. What is not known is `unknown`, and never spread over its neighbours.

#![forbid(unsafe_code)]

mod answer;
mod breakdown;
mod critical_sections;
mod culprit;
mod distribution;
mod functions;
mod groups;
mod histogram;
mod history;
mod interval;
mod locks;
mod measure;
mod pictures;
mod request;
mod states;

pub use answer::{Answer, Column, Kind, Value, percent};
pub use culprit::{Culprit, who_had_cpu};
pub use distribution::Distribution;
pub use functions::folded;
pub use histogram::Histogram;
pub use history::{
    Context, Gap, History, HistoryBuilder, Interrupt, Life, LockRequest, LwpStay, Names, Needs, Series,
    SeriesBuilder, Span, Syscall, ThreadStay, Track, Wakeup, Word, Words,
};
pub use interval::Interval;
pub use measure::{ALL, Measure, named};
pub use pictures::{cdf_svg, gantt, gantt_svg};
pub use request::{By, Group, Level, Request, pattern};
