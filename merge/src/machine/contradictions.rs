//! What contradicted the state: each kind is one row of `losses`, with its count and its first case.

use std::collections::BTreeMap;

use sigmund_model::{Level, Loss, LossKind, Severity, Ticks};

/// A kind of contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contradiction {
    /// A CPU left its idle task for an LWP that was runnable, and no switch says so.
    UnseenSwitch,
    /// A CPU left an LWP for another that was runnable in its run queue, and no switch says so.
    UnseenTakeover,
    /// A CPU has another LWP than the switches say.
    OtherLwp,
    /// An LWP is on a second CPU.
    TwoCpus,
    /// An LWP recorded an event while the switches say that it is off-CPU.
    RanOffCpu,
    /// A user thread is mounted on a second LWP.
    TwoLwps,
    /// An LWP carries another user thread than the switches say.
    OtherThread,
}

impl Contradiction {
    fn what(self) -> &'static str {
        match self {
            Contradiction::UnseenSwitch => "the kernel did not trace a switch that left the idle task",
            Contradiction::UnseenTakeover => "the kernel did not trace a switch from one LWP to another",
            Contradiction::OtherLwp => "a CPU had another LWP than the switches say",
            Contradiction::TwoCpus => "an LWP was put on a second CPU",
            Contradiction::RanOffCpu => "an LWP recorded an event while off-CPU",
            Contradiction::TwoLwps => "a user thread was mounted on a second LWP",
            Contradiction::OtherThread => "an LWP carried another user thread than the switches say",
        }
    }

    /// What an unseen switch from the idle task would have said is known, to a few microseconds. One between two LWPs
    /// leaves open how long the first of them ran on.
    fn severity(self) -> Severity {
        if self == Contradiction::UnseenSwitch { Severity::Note } else { Severity::Gap }
    }

    fn advice(self) -> &'static str {
        match self {
            Contradiction::TwoCpus => {
                "events are missing, or the counters of two CPUs differ: see the other losses, or merge with --align-cpus"
            }
            Contradiction::UnseenTakeover => {
                "the LWP that was replaced is taken to have run until its own last event, and may have run on"
            }
            _ => "events are missing, or two clocks differ; see the other losses",
        }
    }

    fn level(self) -> Level {
        match self {
            Contradiction::UnseenSwitch
            | Contradiction::UnseenTakeover
            | Contradiction::OtherLwp
            | Contradiction::TwoCpus
            | Contradiction::RanOffCpu => Level::Kern,
            Contradiction::TwoLwps | Contradiction::OtherThread => Level::User,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Contradictions {
    seen: BTreeMap<Contradiction, Seen>,
}

#[derive(Debug)]
struct Seen {
    count: u64,
    first: Ticks,
    last: Ticks,
    example: String,
}

impl Contradictions {
    pub(super) fn add(&mut self, what: Contradiction, tick: Ticks, example: String) {
        let new = || Seen { count: 0, first: tick, last: tick, example };
        let seen = self.seen.entry(what).or_insert_with(new);
        seen.count += 1;
        seen.last = tick;
    }

    pub(super) fn into_losses(self) -> Vec<Loss> {
        let loss = |(what, seen): (Contradiction, Seen)| {
            let detail = format!("{}; first {}", what.what(), seen.example);
            Loss {
                severity: what.severity(),
                from: Some(seen.first),
                to: Some(seen.last),
                count: Some(seen.count),
                advice: what.advice(),
                ..Loss::new(LossKind::Contradiction, what.level(), detail)
            }
        };
        self.seen.into_iter().map(loss).collect()
    }
}
