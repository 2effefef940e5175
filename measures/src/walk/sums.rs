//! Sums by kind and culprit. Recent keys are found without hashing, and culprits that are grouped are added together.

use super::{Actor, Blame, Sum, WaitsFor, totals::Of};
use crate::{By, History, map::Map};

/// The number of recent keys; a power of two.
const RECENT: usize = 512;

/// Adds up many lengths. Walks near each other usually have the same culprits.
#[derive(Default)]
pub(super) struct Sums {
    sums: Map<(Of, Blame), Sum>,
    /// Indexed by the number of the key; empty at first.
    recent: Vec<Option<((Of, Blame), Sum)>>,
}

impl Sums {
    pub(super) fn add(&mut self, history: &History, by: By, key: (Of, Blame), sum: Sum) {
        if self.recent.is_empty() {
            self.recent = vec![None; RECENT];
        }
        let recent = &mut self.recent[number(&key)];
        match recent {
            Some((known, into)) if *known == key => {
                into.add(sum);
            }
            _ => {
                if let Some((known, before)) = recent.replace((key, sum)) {
                    add(&mut self.sums, represented(history, by, known), before);
                }
            }
        }
    }

    /// Adds to the sum of a culprit that is not to be grouped, or is already grouped.
    pub(super) fn add_grouped(&mut self, key: (Of, Blame), sum: Sum) {
        add(&mut self.sums, key, sum);
    }

    /// All sums.
    pub(super) fn finish(mut self, history: &History, by: By) -> Map<(Of, Blame), Sum> {
        for (key, sum) in self.recent.into_iter().flatten() {
            add(&mut self.sums, represented(history, by, key), sum);
        }
        self.sums
    }
}

fn represented(history: &History, by: By, (of, blame): (Of, Blame)) -> (Of, Blame) {
    (of, blame.representative(history, by))
}

fn add(sums: &mut Map<(Of, Blame), Sum>, key: (Of, Blame), sum: Sum) {
    sums.entry(key).or_default().add(sum);
}

/// A number less than `RECENT`, which usually differs for different keys.
fn number((of, blame): &(Of, Blame)) -> usize {
    let of_blame = match blame {
        Blame::Who(Actor::Thread(thread)) => (*thread as usize).wrapping_mul(2),
        Blame::Who(Actor::Lwp(lwp)) => *lwp as usize * 2 + 1,
        Blame::Interrupt(kind, number, _) => {
            (kind.place() * 8).wrapping_add((number.unwrap_or(0) as usize).wrapping_mul(64))
        }
        Blame::Object(_, object, _) => *object as usize >> 4,
        Blame::Call(call) => call.place() * 4,
        _ => 0,
    };
    let waits_for = match of.waits_for {
        Some(WaitsFor::Object(_, object)) => object as usize >> 3,
        Some(WaitsFor::Call(call)) => call.place() * 4,
        _ => 0,
    };
    let of =
        (of.part as usize % RECENT) * 31 + usize::from(of.cause) * 7 + usize::from(of.is_own) + waits_for;
    of_blame.wrapping_mul(5).wrapping_add(of.wrapping_mul(67)) % RECENT
}
