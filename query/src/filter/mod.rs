//! The events and the time window that a query covers. `plan.rs` translates them to expressions.

mod instant;
mod known;
mod lwps;
mod one_of;
mod pattern;
mod plan;
mod reference;

use sigmund_model::{Cpu, Level};

pub use instant::Instant;
pub(crate) use known::check_threads;
pub use lwps::SelectedLwps;
pub use pattern::EventPattern;
pub use reference::{
    LwpList, LwpRef, Numbered, ProcessList, ProcessRef, Reference, ReferenceList, ThreadList, ThreadRef,
};

pub use plan::{Window, number_in};

/// The events and the time window of a query. Several values of one filter are alternatives; filters narrow each other.
/// An empty filter selects everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Events that concern one of these user threads: it was executing, or the event makes it run, wakes or
    /// creates it. An unknown name matches nothing.
    pub threads: Vec<ThreadRef>,
    /// Events of one of these LWPs.
    pub lwps: Vec<LwpRef>,
    /// Events of the LWPs of one of these processes. A measure takes the user threads of these processes instead. It
    /// takes their LWPs if they have no user threads, or if the question is about LWPs.
    pub processes: Vec<ProcessRef>,
    /// Events on one of these CPUs.
    pub cpus: Vec<Cpu>,
    /// Events whose name matches one of these. The name in the paper counts, too.
    pub events: Vec<EventPattern>,
    /// Events of this side only.
    pub level: Option<Level>,
    /// From this instant on.
    pub from: Option<Instant>,
    /// Up to and including this instant. So the tick of a listed event can be used as it is.
    pub to: Option<Instant>,
}
