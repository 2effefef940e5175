//! What took the time from FROM to TO: the walk back, and the interrupts of the waking CPU.

use std::collections::BTreeMap;

use super::pairs::Pair;
use crate::{
    Actor, Blame, By, Context, History, Interval, Key, Many, Piece, Pieces, Slice, Source, Sum, Totals,
    Walking, What, wait_context,
};

/// The walks of pairs, and what they sum to.
pub(super) struct Causes {
    /// Sorted by their ends, each with the number of the sums that it is in.
    pairs: Vec<(u32, Pair)>,
    walking: Walking<Origin>,
    /// Waits for interrupts that began before the slices so far.
    meanwhile: Vec<Meanwhile>,
    totals: Totals,
}

#[derive(Clone, Copy)]
struct Origin {
    part: u32,
    actor: Actor,
}

/// A wait for an interrupt, or the part of it before a slice.
#[derive(Clone, Copy)]
struct Meanwhile {
    part: u32,
    interval: Interval,
    /// The CPU that handled the interrupt at last.
    cpu: u32,
    /// What was waited for.
    source: Blame,
    /// Whether the rest is in a later slice.
    goes_on: bool,
}

/// The sums of a task.
struct Part {
    pieces: Pieces,
    meanwhile: Vec<Meanwhile>,
}

impl Causes {
    /// Each pair with the number of the sums that it is in.
    pub(super) fn new(mut pairs: Vec<(u32, Pair)>) -> Causes {
        let mut totals = Totals::new(|part| vec![part]);
        for (part, pair) in &pairs {
            if pair.actor.is_none() && pair.interval.ticks() > 0 {
                totals.pieces().add_known((*part, "unknown"), Blame::Unknown, pair.interval.ticks(), false);
            }
        }
        pairs.retain(|(_, pair)| pair.actor.is_some());
        pairs.sort_by_key(|(_, pair)| pair.interval.to);
        Causes { pairs, walking: Walking::default(), meanwhile: Vec::new(), totals }
    }

    pub(super) fn add(&mut self, history: &History, slice: Slice, by: By) {
        let begin = slice.interval.from;
        let first = self.pairs.partition_point(|(_, pair)| !slice.is_earliest() && pair.interval.to <= begin);
        let pairs = self.pairs.split_off(first);
        let start = |(part, pair): &(u32, Pair)| {
            let actor = pair.actor.unwrap_or(Actor::Lwp(0));
            (Origin { part: *part, actor }, actor, pair.interval)
        };
        let add = |sum: &mut Part, of: Origin, piece: &Piece, goes_on: bool| {
            let cause = match piece.what {
                What::Interrupt(place) => by_kind(history, place),
                What::Running if piece.actor != of.actor => "another running",
                What::WaitingFor(Source::Interrupt(place)) => {
                    let cpu = history.interrupts[place as usize].cpu;
                    let Some(source) = Blame::of(history, piece, false) else { return };
                    let interval = piece.interval;
                    let meanwhile = Meanwhile { part: of.part, interval, cpu, source, goes_on: false };
                    sum.meanwhile.extend(meanwhile.add(history, begin, &mut sum.pieces));
                    return;
                }
                _ => piece.what.name(),
            };
            sum.pieces.add(history, cause, Many::one(of.part), piece, goes_on);
        };
        let earlier = |meanwhile: Meanwhile| meanwhile.add(history, begin, self.totals.pieces());
        self.meanwhile = std::mem::take(&mut self.meanwhile).into_iter().filter_map(earlier).collect();
        let new = || Part { pieces: Pieces::new(by), meanwhile: Vec::new() };
        for mut part in self.walking.add_slice(history, slice, &pairs, start, new, add) {
            self.totals.pieces().merge(history, part.pieces);
            self.meanwhile.append(&mut part.meanwhile);
        }
        self.totals.add_slice(history, by, slice.interval);
    }

    /// The causes of each part, the largest first.
    pub(super) fn finish(self, history: &History, by: By) -> BTreeMap<u32, Vec<(Key, Sum)>> {
        self.totals.finish(history, by)
    }
}

impl Meanwhile {
    /// Adds what the CPU was in from `begin` on; what is left is before.
    fn add(self, history: &History, begin: i64, pieces: &mut Pieces) -> Option<Meanwhile> {
        let Meanwhile { part, interval, cpu, source, goes_on } = self;
        if interval.from >= interval.to {
            return None;
        }
        let here = Interval { from: interval.from.max(begin), to: interval.to };
        if here.from >= here.to {
            return Some(self);
        }
        let interrupts = history.innermost.of(cpu.into());
        for (during, inside) in interrupts.partition(here) {
            // What goes on after it counts in the later slice.
            let goes_on = goes_on && during.to == here.to && {
                let later = interrupts.at(here.to).map(|(later, place)| (later.from < here.to, place));
                match (inside, later) {
                    (None, None) => true,
                    (Some(place), Some((is_longer, of_later))) => is_longer && place == of_later,
                    _ => false,
                }
            };
            let ticks = during.ticks();
            match inside {
                Some(place) => {
                    let interrupt = &history.interrupts[*place as usize];
                    let blame = Blame::Interrupt(interrupt.kind, interrupt.number, interrupt.name);
                    pieces.add_known((part, by_kind(history, *place)), blame, ticks, goes_on);
                }
                None => pieces.add_known((part, "waiting for an interrupt"), source, ticks, goes_on),
            }
        }
        let rest = Interval { from: interval.from, to: here.from };
        (rest.from < rest.to).then_some(Meanwhile { interval: rest, goes_on: true, ..self })
    }
}

fn by_kind(history: &History, place: u32) -> &'static str {
    let interrupt = &history.interrupts[place as usize];
    if wait_context(history, interrupt) == Context::Softirq { "softirq" } else { "interrupt" }
}
