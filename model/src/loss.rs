//! What is missing from a trace. Loss is data: each becomes a row of the table `losses`.

use crate::{Cpu, Level, Lwp, Ticks, state::named};

named! {
    /// What kind of thing is missing or wrong.
    LossKind {
        /// Events that a full buffer did not take.
        Dropped = "dropped",
        /// Events whose place newer ones took: a flight recorder keeps the last.
        Overwritten = "overwritten",
        /// A packet, page or line that could not be read.
        Damaged = "damaged",
        /// The input ends before it should.
        Truncated = "truncated",
        /// A packet that its writer never finished: the program was killed in it.
        Unfinished = "unfinished",
        /// A whole source that was not recorded.
        NotRecorded = "not-recorded",
        /// The events of a CPU before its first switch: who was on it in between is not known.
        BeforeFirstSwitch = "before-first-switch",
        /// An event whose place contradicts what is known.
        Contradiction = "contradiction",
    }
}

named! {
    /// How much a loss touches the answers.
    Severity {
        /// Nothing that is computed depends on it.
        Note = "note",
        /// Some events are missing; states were re-synchronised.
        Gap = "gap",
        /// Answers across it are not to be trusted.
        Serious = "serious",
    }
}

/// One thing that is missing: what, where, how much, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// What kind of loss.
    pub kind: LossKind,
    /// Which side it is on.
    pub level: Level,
    /// How much it matters.
    pub severity: Severity,
    /// The stream, if it is a kernel one.
    pub cpu: Option<Cpu>,
    /// The stream, if it is a user one.
    pub lwp: Option<Lwp>,
    /// Last instant known to be before the gap.
    pub from: Option<Ticks>,
    /// First instant known to be behind it.
    pub to: Option<Ticks>,
    /// Events lost, where somebody counted them.
    pub count: Option<u64>,
    /// For how long states are unknown because of it, in ticks, summed over those concerned; `None` where nobody measured.
    pub unknown: Option<u64>,
    /// File and place, what was expected and what was there.
    pub detail: String,
    /// What a user can do about it next time; empty if nothing.
    pub advice: &'static str,
}

/// The sum of counts that files state. They need not be true, so it stays at the largest number rather than overflow.
pub fn sum_of_counts(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

impl Loss {
    /// A gap of which nothing is known but what it is; fill in the rest with struct update syntax.
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

    /// Says where the gap ends. An instant before its beginning says nothing about its end: of the two, one is wrong.
    pub fn end_at(&mut self, to: Option<Ticks>) {
        self.to = to.filter(|to| self.from.is_none_or(|from| from <= *to));
    }
}
