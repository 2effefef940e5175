//! Sets of walks that continue as one.

use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    mem::{swap, take},
};

use super::Actor;
use crate::map::Map;

/// What a walk belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The number that identifies its instance.
    pub(crate) place: u32,
    /// Walks of the same part are summed together.
    pub(crate) part: u32,
    /// The actor that it began with, if the pieces of that actor are counted separately.
    pub(crate) actor: Option<Actor>,
}

/// Walks of the same part that share a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Many {
    pub(crate) part: u32,
    /// Whether the piece's actor is the one that the walks began with.
    pub(crate) is_own: bool,
    pub(crate) count: u64,
}

/// Walks at the same place. Each of them ends at its own tick. Most walks are alone until they meet another.
#[derive(Default)]
pub(super) enum Members {
    #[default]
    None,
    One(Member),
    Several(Box<Several>),
}

/// Walks that have met.
#[derive(Default)]
pub(super) struct Several {
    /// The walk that ends first is on top. Walks go backward, so it is the one with the latest end.
    ends: BinaryHeap<Member>,
    /// The number of walks in each part. There are few parts.
    parts: Vec<(u32, u64)>,
    /// The number of walks in each part that began with an actor, where that is counted.
    own: Map<(Actor, u32), u64>,
}

#[derive(Clone, Copy)]
pub(super) struct Member {
    until: i64,
    of: Origin,
}

impl Members {
    pub(super) fn one(of: Origin, until: i64) -> Members {
        Members::One(Member { until, of })
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Members::None)
    }

    /// Adds walks that have come to the same place. Fast if the added walks are fewer.
    pub(super) fn append(&mut self, others: Members) {
        *self = match (take(self), others) {
            (Members::None, members) | (members, Members::None) => members,
            (Members::One(one), Members::One(other)) => {
                let mut several = Box::<Several>::default();
                several.push(one);
                several.push(other);
                Members::Several(several)
            }
            (Members::Several(mut more), Members::One(one))
            | (Members::One(one), Members::Several(mut more)) => {
                more.push(one);
                Members::Several(more)
            }
            (Members::Several(mut more), Members::Several(mut fewer)) => {
                if more.ends.len() < fewer.ends.len() {
                    swap(&mut more, &mut fewer);
                }
                more.append(*fewer);
                Members::Several(more)
            }
        };
    }

    /// Removes the walks that end at a tick or after it. Calls `each` with each of them and its end.
    pub(super) fn end_from(&mut self, tick: i64, mut each: impl FnMut(Origin, i64)) {
        match self {
            Members::None => {}
            Members::One(Member { until, of }) => {
                if *until >= tick {
                    each(*of, *until);
                    *self = Members::None;
                }
            }
            Members::Several(several) => {
                several.end_from(tick, each);
                if several.ends.is_empty() {
                    *self = Members::None;
                }
            }
        }
    }

    /// Removes all walks.
    pub(super) fn end_all(&mut self, mut each: impl FnMut(Origin)) {
        match take(self) {
            Members::None => {}
            Members::One(Member { of, .. }) => each(of),
            Members::Several(several) => several.ends.into_iter().for_each(|member| each(member.of)),
        }
    }

    /// Calls `each` with the numbers of walks, by part and by whether they began with `actor`.
    pub(super) fn each(&self, actor: Actor, mut each: impl FnMut(Many)) {
        match self {
            Members::None => {}
            Members::One(Member { of, .. }) => {
                each(Many { part: of.part, is_own: of.actor == Some(actor), count: 1 });
            }
            Members::Several(several) => several.each(actor, each),
        }
    }
}

impl Several {
    fn push(&mut self, member: Member) {
        self.count(member.of, 1);
        self.ends.push(member);
    }

    fn append(&mut self, mut others: Several) {
        self.ends.append(&mut others.ends);
        for (part, count) in others.parts {
            *self.of_part(part) += count;
        }
        for (own, count) in others.own {
            *self.own.entry(own).or_default() += count;
        }
    }

    fn end_from(&mut self, tick: i64, mut each: impl FnMut(Origin, i64)) {
        while let Some(member) = self.ends.peek().copied().filter(|member| member.until >= tick) {
            self.ends.pop();
            self.count(member.of, -1);
            each(member.of, member.until);
        }
    }

    fn each(&self, actor: Actor, mut each: impl FnMut(Many)) {
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
