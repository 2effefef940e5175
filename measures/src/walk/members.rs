//! Walks that go on as one.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::Actor;
use crate::map::Map;

/// What a walk is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// A number by which it is known.
    pub(crate) place: u32,
    /// Walks of one part are summed together.
    pub(crate) part: u32,
    /// The actor that it began with, where it matters which pieces are of that one.
    pub(crate) actor: Option<Actor>,
}

/// Walks of one part that have a piece in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Many {
    pub(crate) part: u32,
    /// Whether its actor is the one that they began with.
    pub(crate) is_own: bool,
    pub(crate) count: u64,
}

impl Many {
    /// One walk, where it does not matter what it began with.
    pub(crate) fn one(part: u32) -> Many {
        Many { part, is_own: false, count: 1 }
    }
}

/// Walks that are at one place, of which each ends at a tick of its own.
#[derive(Default)]
pub(super) struct Members {
    /// That which ends first, which is the one with the latest end, is on top.
    ends: BinaryHeap<Member>,
    /// How many there are of a part: of few parts.
    parts: Vec<(u32, u64)>,
    /// How many of a part began with an actor, where that matters.
    own: Map<(Actor, u32), u64>,
}

#[derive(Clone, Copy)]
struct Member {
    until: i64,
    of: Origin,
}

impl Members {
    pub(super) fn one(of: Origin, until: i64) -> Members {
        let mut members = Members::default();
        members.count(of, 1);
        members.ends.push(Member { until, of });
        members
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds walks that have come to the same place. Quick if they are fewer.
    pub(super) fn append(&mut self, mut others: Members) {
        if self.len() < others.len() {
            std::mem::swap(self, &mut others);
        }
        self.ends.append(&mut others.ends);
        for (part, count) in others.parts {
            *self.of_part(part) += count;
        }
        for (own, count) in others.own {
            *self.own.entry(own).or_default() += count;
        }
    }

    /// Takes out those that end at a tick or after it, with their ends.
    pub(super) fn end_from(&mut self, tick: i64, mut each: impl FnMut(Origin, i64)) {
        while let Some(member) = self.ends.peek().copied().filter(|member| member.until >= tick) {
            self.ends.pop();
            self.count(member.of, -1);
            each(member.of, member.until);
        }
    }

    /// Takes out all.
    pub(super) fn end_all(&mut self, mut each: impl FnMut(Origin)) {
        std::mem::take(self).ends.into_iter().for_each(|member| each(member.of));
    }

    /// All, by part and by whether pieces of this actor are their own.
    pub(super) fn each(&self, actor: Actor, mut each: impl FnMut(Many)) {
        for (part, all) in self.parts.iter().copied() {
            let own = self.own.get(&(actor, part)).copied().unwrap_or(0);
            for (is_own, count) in [(false, all - own), (true, own)] {
                if count > 0 {
                    each(Many { part, is_own, count });
                }
            }
        }
    }

    fn of_part(&mut self, part: u32) -> &mut u64 {
        let place = self.parts.iter().position(|(known, _)| *known == part).unwrap_or_else(|| {
            self.parts.push((part, 0));
            self.parts.len() - 1
        });
        &mut self.parts[place].1
    }

    fn count(&mut self, of: Origin, change: i64) {
        let of_part = self.of_part(of.part);
        *of_part = of_part.wrapping_add_signed(change);
        if let Some(actor) = of.actor {
            let own = self.own.entry((actor, of.part)).or_default();
            *own = own.wrapping_add_signed(change);
            if *own == 0 {
                self.own.remove(&(actor, of.part));
            }
        }
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Member) -> bool {
        self.until == other.until
    }
}

impl Eq for Member {}

impl PartialOrd for Member {
    fn partial_cmp(&self, other: &Member) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Member {
    fn cmp(&self, other: &Member) -> Ordering {
        self.until.cmp(&other.until)
    }
}
