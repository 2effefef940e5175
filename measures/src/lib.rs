//! The measures: answers about user threads, LWPs and CPUs, computed from intervals in memory.
//!
//! This crate has no I/O and no query engine. A [`History`] holds rows of a super-trace, a [`Request`] selects threads
//! and a window, and each [`Measure`] makes an [`Answer`] of these. `sigmund-query` loads histories and offers every
//! measure to SQL; the command prints answers. All lengths are exact, in ticks. Time for which nothing is known is
//! counted as `unknown`, and never added to neighbouring states.

#![forbid(unsafe_code)]

mod active_time;
mod answer;
mod breakdown;
mod carried;
mod compare;
mod critical_path;
mod critical_sections;
mod culprit;
mod distribution;
mod explain;
mod few;
mod functions;
mod gaps;
mod groups;
mod growing;
mod histogram;
mod history;
mod instances;
mod interrupts;
mod interval;
mod latency;
mod locks;
mod map;
mod measure;
mod noise;
mod numbering;
mod parallel;
mod pictures;
mod quanta;
mod reactivity;
mod request;
mod rows;
mod scale;
mod sketch;
mod sliced;
mod states;
mod stays;
mod summary;
mod switch_cost;
mod tally;
mod texts;
mod walk;

pub use answer::{Answer, Column, Kind, Value, object_text, percent};
pub use compare::{Side, columns_to_compare, compare, request_to_compare, slices_to_compare};
pub use critical_path::critical_path_chains;
pub use culprit::{Culprit, who_had_cpu, who_had_lwps};
pub use distribution::Distribution;
pub use explain::BRAIDS;
pub use functions::FOLDED;
pub use histogram::Histogram;
pub use history::{
    Context, Creators, EventAt, Fault, Gap, History, HistoryBuilder, Interrupt, LastOnCpu, Life, Lives,
    LivesBuilder, LockRequest, LwpRow, LwpStay, Mark, Names, Needs, Row, Series, SeriesBuilder, Slicer, Span,
    Syscall, ThreadRow, ThreadStay, Track, Wakeup, Word, Words, near,
};
pub use interval::Interval;
pub use measure::{ALL, Measure, Subject, named};
pub use pictures::{Canvas, GANTT, MOST_CURVES, Timeline, cdf_svg};
pub use reactivity::{ends_membership, reactivity_pairs};
pub use request::{By, Group, Level, Request, pattern};
pub use rows::{Rows, Spill, Storage};
pub use sliced::{Slice, Sliced};
pub use walk::{Actor, Blame, Link, Piece, Source, What, walk_back};

use history::{Searches, stretches};
use instances::{Instance, Instances, LeftOut, SpanNames, ending_in, those_ending_in};
use walk::{
    Culprits, Joint, Key, Labels, Many, Origin, Pieces, Sum, Totals, Waits, Walking, ends_of_unknown,
    interrupt_of, object_label, wait_context,
};
