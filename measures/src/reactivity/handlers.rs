//! What FROM events in interrupts reach: what their handlers wake, and the softirqs after these.

use std::collections::BTreeSet;

use super::reach::Reached;
use crate::{Context, History, Interrupt, Interval, Mark, Wakeup, interrupt_of, map::Map, wait_context};

/// The interrupts of all CPUs, and what their wakeups reach, as far as an earlier FROM event may need it.
#[derive(Default)]
pub(super) struct Handlers {
    /// Wakeups that reach something, the latest first: in which interrupt, if known.
    wakeups: Map<u32, Vec<(i64, Option<Interrupt>, Reached)>>,
    /// The pieces of innermost interrupts that begin in later slices, sorted by time.
    later: Map<u32, Vec<(i64, Interrupt)>>,
}

impl Handlers {
    /// A wakeup that an interrupt made, at an earlier tick than those before, and what is reached by it.
    pub(super) fn push(&mut self, history: &History, wakeup: &Wakeup, reached: Reached) {
        if let (Some(cpu), false) = (wakeup.cpu, reached.is_empty()) {
            let interrupt = interrupt_of(history, wakeup).map(|place| history.interrupts[place as usize]);
            self.wakeups.entry(cpu).or_default().push((wakeup.tick, interrupt, reached));
        }
    }

    /// Whether a FROM event is in an interrupt.
    pub(super) fn has(history: &History, mark: &Mark) -> bool {
        mark.context.is_interrupt() || handler(history, mark).is_some()
    }

    /// Calls `each` with what is reached by what was woken by the handler around a mark, or by the softirqs after it: those
    /// that begin on its CPU, one after the other, before any other interrupt and before the CPU switches. If the handler is
    /// not known, by what its CPU woke at the same tick.
    pub(super) fn each_reached(
        &self,
        history: &History,
        slice: Interval,
        mark: &Mark,
        mut each: impl FnMut(&[u32]),
    ) {
        let Some(cpu) = mark.cpu else { return };
        let wakeups = self.wakeups.get(&cpu).map_or(&[][..], Vec::as_slice);
        let Some(handler) = handler(history, mark) else {
            let at_once = wakeups.iter().rev().take_while(|(tick, _, _)| *tick == mark.tick);
            return at_once.for_each(|(_, _, reached)| each(reached));
        };
        let switch =
            history.on_cpu.of(cpu.into()).at(mark.tick).map_or(i64::MAX, |(interval, _)| interval.to);
        let mut set = vec![handler];
        let mut until = handler.interval.to;
        for (from, interrupt) in self.pieces(history, slice, cpu, mark.tick) {
            if from >= switch {
                break;
            }
            // What interrupts a member, or surrounds it, is not caused by it.
            if set.contains(&interrupt) || interrupt.interval.from < until {
                continue;
            }
            if !is_softirq(history, &interrupt) {
                break;
            }
            set.push(interrupt);
            until = until.max(interrupt.interval.to);
        }
        let inside = wakeups.iter().rev().take_while(|(tick, _, _)| *tick < until);
        for (_, interrupt, reached) in inside {
            if interrupt.is_some_and(|interrupt| set.contains(&interrupt)) {
                each(reached);
            }
        }
    }

    /// The pieces of innermost interrupts of a CPU that begin after a tick, in the order of time.
    fn pieces<'a>(
        &'a self,
        history: &'a History,
        slice: Interval,
        cpu: u32,
        tick: i64,
    ) -> impl Iterator<Item = (i64, Interrupt)> + 'a {
        let track = history.innermost.of(cpu.into());
        let here = (track.count_from(tick)..track.len()).filter_map(move |place| track.get(place));
        let here = here.take_while(move |(interval, _)| interval.from < slice.to);
        let here = here.map(|(interval, place)| (interval.from, history.interrupts[*place as usize]));
        here.chain(self.later.get(&cpu).into_iter().flatten().copied())
    }

    /// Keeps of a slice what a FROM event before it may need.
    pub(super) fn end_slice(&mut self, history: &History, slice: Interval) {
        let begin = slice.from;
        // When those end that are open at the begin of the slice.
        let mut open: Map<u32, i64> = Map::default();
        for interrupt in &history.interrupts {
            let until = open.entry(interrupt.cpu).or_insert(i64::MIN);
            if interrupt.interval.from < begin {
                *until = interrupt.interval.to.max(*until);
            }
        }
        let known = self.later.keys().chain(self.wakeups.keys()).copied();
        let cpus: BTreeSet<u32> = open.keys().copied().chain(known).collect();
        for cpu in cpus {
            // Before a switch nothing after it is needed.
            let switch = match history.on_cpu.of(cpu.into()).at(begin) {
                Some((interval, _)) if interval.from == begin => begin,
                Some((interval, _)) => interval.to,
                None => i64::MAX,
            };
            // Nor what is after an interrupt that no other one surrounds, unless it is a softirq.
            let mut until = open.get(&cpu).copied().unwrap_or(i64::MIN);
            let (mut kept, mut end) = (Vec::new(), switch);
            for (from, interrupt) in self.pieces(history, slice, cpu, begin.saturating_sub(1)) {
                let is_apart =
                    interrupt.interval.from >= begin.max(until) && !is_softirq(history, &interrupt);
                if from >= switch || is_apart {
                    end = from;
                    break;
                }
                until = until.max(interrupt.interval.to);
                kept.push((from, interrupt));
            }
            self.later.insert(cpu, kept);
            if let Some(wakeups) = self.wakeups.get_mut(&cpu) {
                wakeups.retain(|(tick, _, _)| *tick < end.max(until));
            }
        }
        self.later.retain(|_, pieces| !pieces.is_empty());
        self.wakeups.retain(|_, wakeups| !wakeups.is_empty());
    }
}

fn handler(history: &History, mark: &Mark) -> Option<Interrupt> {
    let (_, place) = history.innermost.of(mark.cpu?.into()).at(mark.tick)?;
    Some(history.interrupts[*place as usize])
}

fn is_softirq(history: &History, interrupt: &Interrupt) -> bool {
    wait_context(history, interrupt) == Context::Softirq
}
