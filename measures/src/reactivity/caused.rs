//! The TO event that a FROM event caused, found forward through wakeups and unparks of both levels.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState};

use crate::{Actor, Context, History, Mark, Wakeup, interrupt_of, wait_context};

/// Marks and wakeups, by the thread or LWP that made them.
pub(super) struct Causes<'h> {
    history: &'h History,
    marks: &'h [Mark],
    /// The places of TO marks.
    to: Map<Actor, Vec<usize>>,
    /// The places of wakeups that LWPs made.
    by_actor: Map<Actor, Vec<usize>>,
    /// The places of wakeups that interrupts made, by the CPU.
    by_cpu: Map<u32, Vec<usize>>,
}

/// Of an event: the mounted thread, else the LWP.
pub(super) fn actor(thread: Option<u64>, lwp: Option<u32>) -> Option<Actor> {
    thread.map(Actor::Thread).or(lwp.filter(|lwp| *lwp != 0).map(Actor::Lwp))
}

impl<'h> Causes<'h> {
    /// Of the marks whose places are `to`.
    pub(super) fn new(history: &'h History, to: &[usize]) -> Causes<'h> {
        let marks = &history.marks;
        let mut causes =
            Causes { history, marks, to: Map::default(), by_actor: Map::default(), by_cpu: Map::default() };
        for place in to {
            if let Some(actor) = actor(marks[*place].thread, marks[*place].lwp) {
                causes.to.entry(actor).or_default().push(*place);
            }
        }
        for (place, wakeup) in history.wakeups.iter().enumerate() {
            let is_interrupt = wakeup.context.is_interrupt();
            match (is_interrupt, wakeup.cpu, actor(wakeup.waker_thread, wakeup.waker_lwp)) {
                (true, Some(cpu), _) => causes.by_cpu.entry(cpu).or_default().push(place),
                (false, _, Some(actor)) => causes.by_actor.entry(actor).or_default().push(place),
                _ => {}
            }
        }
        causes
    }

    /// The first TO mark, not used yet, of a thread or LWP that the mark at `from` caused before `limit`.
    pub(super) fn first(&self, from: usize, limit: i64, is_used: &[bool]) -> Option<usize> {
        let mark = &self.marks[from];
        let mut entering = BinaryHeap::new();
        let mut begins_with_own = false;
        if mark.context.is_interrupt() || self.interrupt_at(mark).is_some() {
            self.woken_by_interrupt(mark, limit, &mut entering);
        } else if let Some(actor) = actor(mark.thread, mark.lwp) {
            entering.push(Reverse((mark.tick, actor)));
            begins_with_own = true;
        }
        let mut members: BTreeMap<Actor, i64> = BTreeMap::new();
        let mut best: Option<usize> = None;
        while let Some(Reverse((tick, actor))) = entering.pop() {
            let is_own = std::mem::take(&mut begins_with_own);
            let end = best.map_or(limit, |best| self.marks[best].tick.saturating_add(1));
            if tick >= end {
                break;
            }
            if members.get(&actor).is_some_and(|leaves| tick < *leaves) {
                continue;
            }
            let leaves = self.leaves(actor, tick, limit);
            members.insert(actor, leaves);
            let is_answer = |place: &&usize| **place > from && !is_used[**place];
            let to = self.to.get(&actor).map_or(&[][..], Vec::as_slice);
            let to = &to[to.partition_point(|place| self.marks[*place].tick < tick)..];
            // The event by which it begins to wait is its own; not if it was woken at that very tick, which is after it.
            let last = if tick < leaves || is_own { leaves } else { leaves.saturating_sub(1) };
            let last = last.min(end.saturating_sub(1));
            let to = to.iter().take_while(|place| self.marks[**place].tick <= last).find(is_answer);
            best = best.into_iter().chain(to.copied()).min();
            let end = best.map_or(limit, |best| self.marks[best].tick.saturating_add(1)).min(leaves);
            for wakeup in self.wakeups(self.by_actor.get(&actor), tick, end) {
                enter(wakeup, self.history, &mut entering);
            }
        }
        best
    }

    /// The places of wakeups are sorted by time.
    fn wakeups(
        &self,
        places: Option<&'h Vec<usize>>,
        from: i64,
        to: i64,
    ) -> impl Iterator<Item = &'h Wakeup> {
        let wakeups = &self.history.wakeups;
        let places = places.map_or(&[][..], Vec::as_slice);
        let first = places.partition_point(|place| wakeups[*place].tick < from);
        places[first..].iter().map(|place| &wakeups[*place]).take_while(move |wakeup| wakeup.tick < to)
    }

    /// The interrupt that a mark is in, by its place.
    fn interrupt_at(&self, mark: &Mark) -> Option<u32> {
        let (_, place) = self.history.innermost.of(mark.cpu?.into()).at(mark.tick)?;
        Some(*place)
    }

    /// The LWPs and threads that were woken by the handler around a mark, or by the softirqs after it: those that begin on
    /// its CPU, one after the other, before any other interrupt and before the CPU switches. If the handler is not known,
    /// those that its CPU woke at the same tick.
    fn woken_by_interrupt(&self, mark: &Mark, limit: i64, entering: &mut BinaryHeap<Reverse<(i64, Actor)>>) {
        let Some(cpu) = mark.cpu else { return };
        let history = self.history;
        let Some(handler) = self.interrupt_at(mark) else {
            let at_once = self.wakeups(self.by_cpu.get(&cpu), mark.tick, mark.tick.saturating_add(1));
            return at_once.for_each(|wakeup| enter(wakeup, history, entering));
        };
        let mut set = vec![handler];
        let switch = history.on_cpu.of(cpu.into()).at(mark.tick).map_or(limit, |(interval, _)| interval.to);
        let pieces = history.innermost.of(cpu.into());
        let mut until = history.interrupts[handler as usize].interval.to;
        let first = pieces.count_from(mark.tick);
        for (interval, place) in (first..pieces.len()).filter_map(|place| pieces.get(place)) {
            if interval.from >= switch.min(limit) {
                break;
            }
            let interrupt = &history.interrupts[*place as usize];
            if set.contains(place) {
                continue;
            }
            // What interrupts a member, or surrounds it, is not caused by it.
            if interrupt.interval.from < until {
                continue;
            }
            if wait_context(history, *place) != Context::Softirq {
                break;
            }
            set.push(*place);
            until = until.max(interrupt.interval.to);
        }
        for wakeup in self.wakeups(self.by_cpu.get(&cpu), mark.tick, until.min(limit)) {
            if interrupt_of(history, wakeup).is_some_and(|place| set.contains(&place)) {
                enter(wakeup, history, entering);
            }
        }
    }

    /// When a member leaves: at its next wait, or where its state is not known.
    fn leaves(&self, actor: Actor, tick: i64, limit: i64) -> i64 {
        use ThreadState::{Active, Blocked, InKernel, Mounted, New, Ready, Stalled, Stopped};
        match actor {
            Actor::Thread(thread) => {
                let states = self.history.threads.of(thread);
                let states =
                    (states.count_from(tick).saturating_sub(1)..states.len()).map_while(|p| states.get(p));
                first_left(states, tick, limit, |stay| match stay.state {
                    Active | Stalled | Ready | New | Mounted => Stays::In,
                    Blocked | InKernel | Stopped => Stays::Waits,
                    _ => Stays::Unknown,
                })
            }
            Actor::Lwp(lwp) => {
                let states = self.history.lwps.of(lwp.into());
                let states =
                    (states.count_from(tick).saturating_sub(1)..states.len()).map_while(|p| states.get(p));
                first_left(states, tick, limit, |stay| match stay.state {
                    LwpState::Running | LwpState::Runnable => Stays::In,
                    LwpState::Exited | LwpState::OffCpu | LwpState::Unknown => Stays::Unknown,
                    _ => Stays::Waits,
                })
            }
        }
    }
}

enum Stays {
    In,
    Waits,
    Unknown,
}

/// The begin of the first state from `tick` on in which it is not runnable; the wait out of which it was woken does not
/// count.
fn first_left<'s, T: 's>(
    states: impl Iterator<Item = (crate::Interval, &'s T)>,
    tick: i64,
    limit: i64,
    stays: impl Fn(&T) -> Stays,
) -> i64 {
    for (interval, stay) in states {
        if interval.from >= limit {
            return limit;
        }
        match stays(stay) {
            Stays::In => {}
            Stays::Waits if interval.from < tick => {}
            _ => return interval.from.max(tick).min(limit),
        }
    }
    limit
}

/// The members that a wakeup adds: the LWP or the thread, and the thread that a woken LWP carries.
fn enter(wakeup: &Wakeup, history: &History, entering: &mut BinaryHeap<Reverse<(i64, Actor)>>) {
    if wakeup.is_unpark {
        entering.extend(wakeup.thread.map(|thread| Reverse((wakeup.tick, Actor::Thread(thread)))));
        return;
    }
    let Some(lwp) = wakeup.lwp else { return };
    let carried = wakeup.thread.or_else(|| history.mounted_at(lwp, wakeup.tick));
    entering.push(Reverse((wakeup.tick, Actor::Lwp(lwp))));
    entering.extend(carried.map(|thread| Reverse((wakeup.tick, Actor::Thread(thread)))));
}
