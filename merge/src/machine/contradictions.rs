//! Evidence that contradicts the state. Each kind of contradiction is one row of `losses`: how often it occurred, its
//! first example, and for how long the state of LWPs and user threads is unknown because of it.

use std::collections::BTreeMap;

use sigmund_model::{Level, Loss, LossKind, Ticks};

use super::lwp::LwpEntry;

/// A kind of contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contradiction {
    /// A CPU left its idle task for a runnable LWP, but there is no switch.
    UnseenSwitch,
    /// A CPU left an LWP for another one that was runnable in its run queue, but there is no switch.
    UnseenTakeover,
    /// An LWP other than the one according to the switches is on a CPU.
    OtherLwp,
    /// An LWP left its CPU at an unobserved time.
    UnseenDeparture,
    /// An LWP is on a second CPU.
    TwoCpus,
    /// An LWP recorded an event while it is off-CPU according to the switches.
    RanOffCpu,
    /// A user thread is mounted on a second LWP.
    TwoLwps,
    /// An LWP carries a user thread other than the one according to the switches.
    OtherThread,
}

impl Contradiction {
    fn what(self) -> &'static str {
        match self {
            Contradiction::UnseenSwitch => "the kernel did not trace a switch that left the idle task",
            Contradiction::UnseenTakeover => "the kernel did not trace a switch from one LWP to another",
            Contradiction::OtherLwp => "a CPU had another LWP than the switches say",
            Contradiction::UnseenDeparture => "an LWP left its CPU, and no switch says when",
            Contradiction::TwoCpus => "an LWP was put on a second CPU",
            Contradiction::RanOffCpu => "an LWP recorded an event while off-CPU",
            Contradiction::TwoLwps => "a user thread was mounted on a second LWP",
            Contradiction::OtherThread => "an LWP carried another user thread than the switches say",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Contradiction::TwoCpus => {
                "events are missing, or the counters of two CPUs differ: see the other losses, or merge with --align-cpus"
            }
            Contradiction::UnseenSwitch | Contradiction::UnseenTakeover => {
                "what both did is unknown from the last event that shows it to the one that shows the switch"
            }
            _ => "events are missing, or two clocks differ; see the other losses",
        }
    }

    fn level(self) -> Level {
        match self {
            Contradiction::UnseenSwitch
            | Contradiction::UnseenTakeover
            | Contradiction::OtherLwp
            | Contradiction::UnseenDeparture
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
    /// For how long a state is unknown because of these contradictions, in ticks, summed over LWPs or user threads.
    unknown: u64,
    example: String,
}

impl Contradictions {
    pub(super) fn add(&mut self, what: Contradiction, tick: Ticks, example: String) {
        let new = || Seen { count: 0, first: tick, last: tick, unknown: 0, example };
        let seen = self.seen.entry(what).or_insert_with(new);
        seen.count += 1;
        seen.last = tick;
    }

    /// Adds the time for which a contradiction of this kind makes the state of an LWP or thread unknown.
    pub(super) fn unknown(&mut self, what: Contradiction, length: u64) {
        if let Some(seen) = self.seen.get_mut(&what) {
            // Ticks of a damaged trace are far apart, and each LWP adds to this sum.
            seen.unknown = seen.unknown.saturating_add(length);
        }
    }

    /// An event at `tick` shows where an LWP is.
    pub(super) fn end_doubt(&mut self, entry: &mut LwpEntry, tick: Ticks) {
        if let Some(what) = entry.doubted.take() {
            self.unknown(what, tick.0 - entry.place_since.0);
        }
    }

    pub(super) fn into_losses(self) -> Vec<Loss> {
        let loss = |(what, seen): (Contradiction, Seen)| {
            let detail = format!("{}; first {}", what.what(), seen.example);
            Loss {
                from: Some(seen.first),
                to: Some(seen.last),
                count: Some(seen.count),
                unknown: Some(seen.unknown),
                advice: what.advice(),
                ..Loss::new(LossKind::Contradiction, what.level(), detail)
            }
        };
        self.seen.into_iter().map(loss).collect()
    }
}
