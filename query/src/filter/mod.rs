//! Which events, and which time, a question is about. How that becomes a plan is in `plan`.

mod instant;
mod known;
mod pattern;
mod plan;
mod thread;

use sigmund_model::{Cpu, Level, Lwp};

pub use instant::Instant;
pub use pattern::EventPattern;
pub use thread::{ThreadList, ThreadRef};

pub use plan::{Window, number_in};

/// Which events, and which time. Several values of one filter are alternatives; filters narrow each other.
/// An empty one lets everything through.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Events that concern one of these user threads: it was executing, or the event makes it run, wakes or
    /// creates it. An unknown name matches nothing.
    pub threads: Vec<ThreadRef>,
    /// Events of one of these LWPs.
    pub lwps: Vec<Lwp>,
    /// Events on one of these CPUs.
    pub cpus: Vec<Cpu>,
    /// Events whose name, or paper's name, fits one of these.
    pub events: Vec<EventPattern>,
    /// Events of this side only.
    pub level: Option<Level>,
    /// From this instant on.
    pub from: Option<Instant>,
    /// Up to this instant, which is inside: the tick of a listed event can be used as it stands.
    pub to: Option<Instant>,
}
