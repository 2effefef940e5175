//! Pairs of FROM and TO events.

use super::{
    handlers::Handlers,
    reach::{Reach, Step, actor, woken},
};
use crate::{Actor, EventAt, History, Interval, Mark, Request, Searches, Slice, map::Map};

/// A FROM event and the TO event that it led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// From FROM to TO.
    pub(crate) interval: Interval,
    /// The thread or LWP of TO. If FROM caused TO: the member whose event it is. Otherwise: the recorder of TO.
    pub(crate) actor: Option<Actor>,
    /// Whether FROM caused TO through wakeups. If not, TO is just the next event.
    pub(crate) is_caused: bool,
    /// The CPU of FROM.
    pub(crate) from_cpu: Option<u32>,
    /// The user thread of that actor: the actor itself, or the one that it carries.
    pub(crate) thread: Option<u64>,
    /// The LWP of that actor.
    pub(crate) lwp: Option<u32>,
}

/// The pairs whose TO event is of a selected thread, LWP and CPU, in the order of their FROM events; and the number of
/// FROM events without any TO event. Both events of a pair are in the window.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) unmatched: usize,
}

/// Collects pairs, slice by slice.
#[derive(Default)]
pub(crate) struct Pairs {
    search: Box<Search>,
    /// The maximum number of reached TO events that are kept for each thread or LWP.
    keep: usize,
    found: Found,
}

/// A search backward in time. In all lists, the last event comes first.
#[derive(Default)]
struct Search {
    from: Vec<From>,
    to: Tos,
    /// The TO events that FROM events reach, one FROM event after the other.
    reached: Vec<u32>,
    reach: Reach,
    handlers: Handlers,
}

struct From {
    tick: i64,
    key: u64,
    cpu: Option<u32>,
    /// The number of TO events after it.
    after: u32,
    /// The end of its part of `Search::reached`.
    reached: usize,
    /// Whether its part was cut, so that it may reach more.
    is_cut: bool,
}

/// TO events; there may be many millions. Each counts as an event of its recorder, and of its target, if it has one. At
/// place N, number `2 * N` stands for the former, and `2 * N + 1` for the latter.
#[derive(Default)]
struct Tos {
    recorders: Vec<EventAt>,
    /// The places of the events that have targets, in order, and the targets.
    targets: Vec<(u32, EventAt)>,
}

impl Tos {
    fn len(&self) -> usize {
        self.recorders.len()
    }

    fn push(&mut self, mark: &Mark) {
        if mark.target_lwp.is_some() || mark.target_thread.is_some() {
            let target = EventAt::new(mark.tick, mark.target_lwp, mark.cpu, mark.target_thread);
            self.targets.push((self.len() as u32, target));
        }
        self.recorders.push(EventAt::new(mark.tick, mark.lwp, mark.cpu, mark.thread));
    }

    /// The recorder or the target of a TO event, by its number.
    fn get(&self, event: u32) -> EventAt {
        let place = event / 2;
        let target = || {
            let found = self.targets.binary_search_by_key(&place, |(place, _)| *place).ok()?;
            Some(self.targets[found].1)
        };
        let target = if event.is_multiple_of(2) { None } else { target() };
        target.unwrap_or(self.recorders[place as usize])
    }

    fn tick(&self, event: u32) -> i64 {
        self.recorders[(event / 2) as usize].tick()
    }
}

/// The actors of an event: its recorder, and those that it switches in, wakes or creates. With each, whether it is a
/// target.
fn actors(mark: &Mark) -> impl Iterator<Item = (Actor, bool)> {
    let recorder = actor(mark.thread, mark.lwp).map(|actor| (actor, false));
    let lwp = mark.target_lwp.filter(|lwp| *lwp != 0).map(|lwp| (Actor::Lwp(lwp), true));
    let thread = mark.target_thread.map(|thread| (Actor::Thread(thread), true));
    [recorder, lwp, thread].into_iter().flatten()
}

impl Pairs {
    pub(crate) fn add(&mut self, history: &History, slice: Slice, request: &Request) {
        // The window includes events at its last tick, so one more tick is needed.
        let to = slice.interval.to.saturating_add(i64::from(slice.is_latest()));
        let here = Interval { from: slice.interval.from, to };
        self.search.add(history, here, request, self.keep.max(1));
        self.search.reach.end_slice(history, here);
        self.search.handlers.end_slice(history, here);
    }

    /// To be called after all slices were added: whether all pairs are found. If not, more TO events have to be kept,
    /// because many FROM events reach the same ones. All slices then have to be added again.
    pub(crate) fn is_done(&mut self, history: &History, request: &Request) -> bool {
        let search = std::mem::take(&mut self.search);
        let end = request.extent(history).to.saturating_add(1);
        match search.pairs(end, request) {
            Some(found) => self.found = found,
            None => {
                self.keep = self.keep.max(1) * 2;
                return false;
            }
        }
        true
    }

    pub(crate) fn finish(self) -> Found {
        self.found
    }
}

impl Search {
    fn add(&mut self, history: &History, here: Interval, request: &Request, keep: usize) {
        let window = request.extent(history);
        let (marks, wakeups) = (&history.marks, &history.wakeups);
        let mut searches = Searches::new(history);
        let first = |is_before: &dyn Fn(i64) -> bool| {
            (
                marks.partition_point(|mark| is_before(mark.tick)),
                wakeups.partition_point(|wakeup| is_before(wakeup.tick)),
            )
        };
        let (first_mark, first_wakeup) = first(&|tick| tick < here.from);
        let (mut mark, mut wakeup) = first(&|tick| tick < here.to);
        // The actors of the events at a tick, with the TO events; and the FROM events.
        let (mut events, mut from) = (Vec::new(), Vec::new());
        while mark > first_mark || wakeup > first_wakeup {
            let tick = [
                marks[first_mark..mark].last().map(|m| m.tick),
                wakeups[first_wakeup..wakeup].last().map(|w| w.tick),
            ];
            let Some(tick) = tick.into_iter().flatten().max() else { return };
            let marks_here = {
                let end = mark;
                while mark > first_mark && marks[mark - 1].tick == tick {
                    mark -= 1;
                }
                &marks[mark..end]
            };
            let wakeups_here = {
                let end = wakeup;
                while wakeup > first_wakeup && wakeups[wakeup - 1].tick == tick {
                    wakeup -= 1;
                }
                &wakeups[wakeup..end]
            };
            let is_in_window = (window.from..=window.to).contains(&tick);
            events.clear();
            from.clear();
            for mark in marks_here.iter().rev().filter(|_| is_in_window) {
                if mark.is_from {
                    from.push((mark, self.to.len() as u32));
                    events.extend(actors(mark).map(|(actor, _)| (actor, None)));
                }
                if mark.is_to {
                    let place = self.to.len() as u32;
                    let event = |is_target| Some(2 * place + u32::from(is_target));
                    events.extend(actors(mark).map(|(actor, is_target)| (actor, event(is_target))));
                    self.handlers.push_event(history, mark, 2 * place);
                    self.to.push(mark);
                }
            }
            if events.is_empty() && from.is_empty() && !self.is_reached(&mut searches, wakeups_here) {
                continue;
            }
            // Most ticks have one event.
            if let (&[(actor, Some(event))], [], []) = (events.as_slice(), from.as_slice(), wakeups_here) {
                self.reach.step_to(&mut searches, tick, (actor, event), keep);
                continue;
            }
            let step = self.reach.step(&mut searches, tick, wakeups_here, &events, keep);
            for wakeup in wakeups_here.iter().filter(|wakeup| wakeup.context.is_interrupt()) {
                let mut reached = Vec::new();
                for woken in woken(&mut searches, wakeup).into_iter().flatten() {
                    reached.extend_from_slice(step.entering(woken));
                }
                self.handlers.push(history, wakeup, reached);
            }
            for (mark, after) in from.drain(..) {
                self.push_from((history, here), (mark, after), (&step, &events), keep);
            }
        }
    }

    /// Whether one of the woken threads or LWPs reaches anything.
    fn is_reached(&self, searches: &mut Searches<'_>, wakeups: &[crate::Wakeup]) -> bool {
        let mut woken = wakeups.iter().flat_map(|wakeup| woken(searches, wakeup)).flatten();
        !self.reach.is_empty() && woken.any(|woken| self.reach.has(woken))
    }

    /// Adds a FROM event. `after` is the number of later TO events. `step` and `events` have what is reached from its
    /// tick, and the events at its tick.
    fn push_from(
        &mut self,
        (history, here): (&History, Interval),
        (mark, after): (&Mark, u32),
        (step, events): (&Step, &[(Actor, Option<u32>)]),
        keep: usize,
    ) {
        let mut reached: Vec<u32> = Vec::new();
        let is_in_interrupt = Handlers::has(history, mark);
        if is_in_interrupt {
            let each = |events: &[u32]| reached.extend_from_slice(events);
            self.handlers.each_reached(history, here, mark, (2 * after, keep), each);
        }
        // The task that was interrupted has no part in an event in an interrupt.
        let actors = actors(mark).filter(|(_, is_target)| *is_target || !is_in_interrupt);
        for (actor, _) in actors {
            if step.enters(actor) {
                reached.extend_from_slice(step.entering(actor));
            } else {
                // If it begins to wait with this event, the event itself still counts.
                reached.extend(
                    events.iter().filter(|(other, _)| *other == actor).filter_map(|(_, event)| *event),
                );
            }
        }
        reached.retain(|event| *event < 2 * after);
        reached.sort_unstable_by(|a, b| b.cmp(a));
        reached.dedup();
        let is_cut = reached.len() >= keep;
        reached.truncate(keep);
        self.reached.append(&mut reached);
        self.from.push(From {
            tick: mark.tick,
            key: mark.key,
            cpu: mark.cpu,
            after,
            reached: self.reached.len(),
            is_cut,
        });
    }

    /// The pairs, from the first FROM event on. In a first round, each FROM event takes the first TO event that it
    /// reaches before the next FROM event of the same key, if no other has taken it. In a second round, each of the
    /// remaining FROM events takes, in order, the next remaining TO event. The selection applies to the resulting
    /// pairs. `None` if more TO events have to be kept.
    fn pairs(&self, end: i64, request: &Request) -> Option<Found> {
        let limits = limits(&self.from, end);
        let mut is_used = vec![false; self.to.len()];
        // For each FROM event, its TO event; from the first FROM event on.
        let mut found: Vec<Option<u32>> = Vec::with_capacity(self.from.len());
        for (place, from) in self.from.iter().enumerate().rev() {
            let begin = place.checked_sub(1).map_or(0, |later| self.from[later].reached);
            let reached = &self.reached[begin..from.reached];
            let limit = limits[place];
            let mut before = reached.iter().copied().take_while(|event| self.to.tick(*event) < limit);
            let first = before.by_ref().find(|event| !is_used[(*event / 2) as usize]);
            if first.is_none()
                && from.is_cut
                && reached.last().is_some_and(|event| self.to.tick(*event) < limit)
            {
                return None;
            }
            if let Some(event) = first {
                is_used[(event / 2) as usize] = true;
            }
            found.push(first);
        }
        let (mut pairs, mut unmatched) = (Vec::with_capacity(self.from.len()), 0);
        let mut next = self.to.len();
        for (from, event) in self.from.iter().rev().zip(found) {
            let is_caused = event.is_some();
            let event = event.or_else(|| {
                next = next.min(from.after as usize);
                while next > 0 && is_used[next - 1] {
                    next -= 1;
                }
                next = next.checked_sub(1)?;
                Some(2 * next as u32)
            });
            let Some(to) = event.map(|event| self.to.get(event)) else {
                unmatched += 1;
                continue;
            };
            if !is_selected(request, to) {
                continue;
            }
            let (thread, lwp) = (to.thread(), to.lwp());
            let (actor, interval) = (actor(thread, lwp), Interval::new(from.tick, to.tick()));
            pairs.push(Pair { interval, actor, is_caused, from_cpu: from.cpu, thread, lwp });
        }
        pairs.shrink_to_fit();
        Some(Found { pairs, unmatched })
    }
}

fn is_selected(request: &Request, to: EventAt) -> bool {
    request.has_thread_or_none(to.thread()) && request.has_place(to.lwp(), to.cpu())
}

/// For each FROM event, the last one first, the tick of the next one with the same key, or `end`.
fn limits(from: &[From], end: i64) -> Vec<i64> {
    let mut later: Map<u64, i64> = Map::default();
    from.iter().map(|from| later.insert(from.key, from.tick).unwrap_or(end)).collect()
}
