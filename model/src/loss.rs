//! What is missing from a trace. Each loss becomes a row of the table `losses`.

use crate::{Cpu, Level, Lwp, Ticks, state::named};

named! {
    /// The kind of a loss.
    LossKind {
        /// Events discarded because a buffer was full.
        Dropped = "dropped",
        /// Events overwritten by newer ones: a flight recorder keeps the newest.
        Overwritten = "overwritten",
        /// A packet, page or line that could not be read.
        Damaged = "damaged",
        /// The input ends before it should.
        Truncated = "truncated",
        /// A packet that its writer never completed: the program was killed while writing it.
        Unfinished = "unfinished",
        /// A whole source that was not recorded.
        NotRecorded = "not-recorded",
        /// The events of a CPU before its first switch: what was on it before is unknown.
        BeforeFirstSwitch = "before-first-switch",
        /// An event whose CPU or LWP contradicts the known state.
        Contradiction = "contradiction",
    }
}

named! {
    /// How much a loss affects the results.
    Severity {
        /// No result depends on it.
        Note = "note",
        /// Some events are missing; states were re-synchronised after it.
        Gap = "gap",
        /// Results across it are not reliable.
        Serious = "serious",
    }
}

/// One loss: what is missing, where, how much, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Its kind.
    pub kind: LossKind,
    /// The side that lost it.
    pub level: Level,
    /// How much it affects the results.
    pub severity: Severity,
    /// The CPU, if a kernel stream lost it.
    pub cpu: Option<Cpu>,
    /// The LWP, if a user stream lost it.
    pub lwp: Option<Lwp>,
    /// Last instant known to be before the gap.
    pub from: Option<Ticks>,
    /// First instant known to be after the gap.
    pub to: Option<Ticks>,
    /// Events lost, if they were counted.
    pub count: Option<u64>,
    /// How long states are unknown because of it, in ticks, summed over the threads or LWPs concerned; `None` if not
    /// measured.
    pub unknown: Option<u64>,
    /// File and position, what was expected and what was found.
    pub detail: String,
    /// How to avoid it in the next recording; empty if there is no advice.
    pub advice: &'static str,
}

/// The sum of counts from files. They may be wrong, so the sum saturates instead of overflowing.
pub fn sum_of_counts(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

impl Loss {
    /// A loss of which only the kind, level and detail are known; fill in the rest with struct update syntax.
    pub fn new(kind: LossKind, level: Level, detail: impl Into<String>) -> Loss {
        Loss {
            kind,
            level,
            severity: Severity::Gap,
            cpu: None,
            lwp: None,
            from: None,
            to: None,
            count: None,
            unknown: None,
            detail: detail.into(),
            advice: "",
        }
    }

    /// Sets the end of the gap. An end before the beginning is ignored: one of the two is wrong.
    pub fn end_at(&mut self, to: Option<Ticks>) {
        self.to = to.filter(|to| self.from.is_none_or(|from| from <= *to));
    }
}
