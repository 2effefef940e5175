//! What FROM events in interrupts reach: TO events in their handlers and in the softirqs that follow, and what these
//! wake.

use std::collections::BTreeSet;

use super::reach::Reached;
use crate::{Context, History, Interrupt, Interval, Mark, Wakeup, interrupt_of, map::Map, wait_context};

/// The interrupts of all CPUs, and what their wakeups reach, as far as earlier FROM events may need it.
#[derive(Default)]
pub(super) struct Handlers {
    /// Per CPU: the wakeups that reach something, the latest first, each with its interrupt, if known.
    wakeups: Map<u32, Vec<(i64, Option<Interrupt>, Reached)>>,
    /// Per CPU: the TO events in interrupts, the latest first.
    events: Map<u32, Vec<Inside>>,
    /// Per CPU: the pieces of innermost interrupts that begin in later slices, sorted by time.
    later: Map<u32, Vec<(i64, Interrupt)>>,
}

/// A TO event in an interrupt. An interval identifies an interrupt of its CPU.
#[derive(Clone, Copy)]
struct Inside {
    tick: i64,
    event: u32,
    /// The innermost interrupt at that tick.
    of: Option<Interval>,
    /// The interrupt that ends at that tick. Its exit counts as an event of it.
    ended: Option<Interval>,
}

impl Handlers {
    /// Adds a TO event. It has to be earlier than those added before; at the same tick, it comes before them.
    pub(super) fn push_event(&mut self, history: &History, mark: &Mark, event: u32) {
        let Some(cpu) = mark.cpu else { return };
        let interval = |interrupt: Interrupt| interrupt.interval;
        let (of, ended) = (open(history, mark).map(interval), ended(history, mark).map(interval));
        if of.is_some() || ended.is_some() {
            self.events.entry(cpu).or_default().push(Inside { tick: mark.tick, event, of, ended });
        }
    }

    /// Adds a wakeup made by an interrupt, and what the woken thread reaches. It has to be earlier than those added
    /// before.
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

    /// Calls `each` with what a FROM event in an interrupt reaches: the TO events in its handler, and in the softirqs
    /// that follow it, and what is reached by threads that these wake. The softirqs are those that begin on the same
    /// CPU one after the other, before another interrupt begins and before the CPU switches. If the handler is unknown,
    /// what its CPU woke at the same tick counts. Of the events in the handlers, only the earliest `keep` before the
    /// event `after` are passed.
    pub(super) fn each_reached(
        &self,
        history: &History,
        slice: Interval,
        mark: &Mark,
        (after, keep): (u32, usize),
        mut each: impl FnMut(&[u32]),
    ) {
        let Some(cpu) = mark.cpu else { return };
        let wakeups = self.wakeups.get(&cpu).map_or(&[][..], Vec::as_slice);
        let Some(handler) = handler(history, mark) else {
            let at_once = wakeups.iter().rev().take_while(|(tick, _, _)| *tick == mark.tick);
            return at_once.for_each(|(_, _, reached)| each(reached));
        };
        let switch = next_switch(history, cpu, mark.tick);
        let mut set = vec![handler];
        let mut until = handler.interval.to;
        for (from, interrupt) in self.pieces(history, slice, cpu, mark.tick) {
            if from >= switch {
                break;
            }
            // An interrupt that surrounds or interrupts a member of the set is not caused by it.
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
        let is_of = |interval: Option<Interval>| {
            interval.is_some_and(|interval| set.iter().any(|member| member.interval == interval))
        };
        let events = self.events.get(&cpu).map_or(&[][..], Vec::as_slice);
        let events = events.iter().rev().take_while(|inside| inside.tick <= until);
        let events =
            events.filter(|inside| inside.event < after && (is_of(inside.of) || is_of(inside.ended)));
        events.take(keep).for_each(|inside| each(&[inside.event]));
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

    /// Keeps from a slice what an earlier FROM event may need.
    pub(super) fn end_slice(&mut self, history: &History, slice: Interval) {
        let begin = slice.from;
        // For each CPU, when all interrupts that are open at the beginning of the slice have ended.
        let mut open: Map<u32, i64> = Map::default();
        for interrupt in &history.interrupts {
            let until = open.entry(interrupt.cpu).or_insert(i64::MIN);
            if interrupt.interval.from < begin {
                *until = interrupt.interval.to.max(*until);
            }
        }
        let known = self.later.keys().chain(self.wakeups.keys()).chain(self.events.keys()).copied();
        let cpus: BTreeSet<u32> = open.keys().copied().chain(known).collect();
        for cpu in cpus {
            // What comes after the next switch is not needed by events before it.
            let begun = history.on_cpu.of(cpu.into()).at(begin);
            let is_begin = begun.is_some_and(|(interval, _)| interval.from == begin);
            let switch = if is_begin { begin } else { next_switch(history, cpu, begin) };
            // Neither is what comes after a separate interrupt, unless that is a softirq.
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
            if let Some(events) = self.events.get_mut(&cpu) {
                events.retain(|inside| inside.tick <= end.max(until));
            }
        }
        self.later.retain(|_, pieces| !pieces.is_empty());
        self.wakeups.retain(|_, wakeups| !wakeups.is_empty());
        self.events.retain(|_, events| !events.is_empty());
    }
}

/// The tick of the first switch of a CPU after a tick. If it is unknown what is on the CPU, there may have been one until
/// that is known again.
fn next_switch(history: &History, cpu: u32, tick: i64) -> i64 {
    let on_cpu = history.on_cpu.of(cpu.into());
    let next = || on_cpu.get(on_cpu.count_from(tick)).map_or(i64::MAX, |(interval, _)| interval.from);
    on_cpu.at(tick).map_or_else(next, |(interval, _)| interval.to)
}

/// The interrupt that contains a mark, or ends at it.
fn handler(history: &History, mark: &Mark) -> Option<Interrupt> {
    open(history, mark).or_else(|| ended(history, mark))
}

/// The innermost interrupt at a mark.
fn open(history: &History, mark: &Mark) -> Option<Interrupt> {
    let (_, place) = history.innermost.of(mark.cpu?.into()).at(mark.tick)?;
    Some(history.interrupts[*place as usize])
}

/// The interrupt that ends at a mark, if the mark may be its exit.
fn ended(history: &History, mark: &Mark) -> Option<Interrupt> {
    let (piece, place) = history.innermost.of(mark.cpu?.into()).before(mark.tick)?;
    let interrupt = history.interrupts[*place as usize];
    let is_end = mark.context.is_interrupt() && piece.to == mark.tick && interrupt.interval.to == mark.tick;
    is_end.then_some(interrupt)
}

fn is_softirq(history: &History, interrupt: &Interrupt) -> bool {
    wait_context(history, interrupt) == Context::Softirq
}
