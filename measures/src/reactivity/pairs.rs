//! Pairs of FROM and TO events.

use crate::map::Map;

use super::caused::{Causes, actor};
use crate::{Actor, History, Interval, Request};

/// A FROM event and the TO event that it led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The place of FROM in `History::marks`.
    pub from: usize,
    /// The place of TO.
    pub to: usize,
    /// From FROM to TO.
    pub interval: Interval,
    /// The thread or LWP that recorded TO.
    pub actor: Option<Actor>,
    /// Whether FROM caused TO through wakeups; else TO is the next event.
    pub is_caused: bool,
}

/// All pairs, in the order of their FROM events, and how many FROM events there are. Both events are in the window; the thread,
/// LWP and CPU of TO are selected.
pub(crate) fn pairs(history: &History, request: &Request) -> (Vec<Pair>, usize) {
    let (window, marks) = (request.extent(history), &history.marks);
    let inside = |place: &usize| (window.from..=window.to).contains(&marks[*place].tick);
    let is_selected = |place: &usize| {
        let mark = &marks[*place];
        let is_of_thread = mark.thread.map_or(request.threads.is_none(), |thread| request.has_thread(thread));
        is_of_thread && request.has_place(mark.lwp, mark.cpu)
    };
    let (mut from, mut to): (Vec<usize>, Vec<usize>) =
        ((0..marks.len()).collect(), (0..marks.len()).collect());
    from.retain(|place| marks[*place].is_from && inside(place));
    to.retain(|place| marks[*place].is_to && inside(place) && is_selected(place));

    let causes = Causes::new(history, &to);
    let mut is_used = vec![false; marks.len()];
    let mut found: Vec<Option<(usize, bool)>> = Vec::with_capacity(from.len());
    for (place, limit) in from.iter().zip(limits(history, &from, window.to.saturating_add(1))) {
        let first = causes.first(*place, limit, &is_used);
        if let Some(to) = first {
            is_used[to] = true;
        }
        found.push(first.map(|to| (to, true)));
    }
    let mut next = to.into_iter().peekable();
    for (place, found) in from.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
        while next.next_if(|to| is_used[*to] || to <= place).is_some() {}
        *found = next.next().map(|to| (to, false));
    }
    let pair = |(from, found): (usize, Option<(usize, bool)>)| {
        let (to, is_caused) = found?;
        let interval = Interval::new(marks[from].tick, marks[to].tick);
        Some(Pair { from, to, interval, actor: actor(marks[to].thread, marks[to].lwp), is_caused })
    };
    let count = from.len();
    (from.into_iter().zip(found).filter_map(pair).collect(), count)
}

/// For each FROM the tick of the next one with the same key, or `end`.
fn limits(history: &History, from: &[usize], end: i64) -> Vec<i64> {
    let mut later: Map<u64, i64> = Map::default();
    let limit = |place: &usize| {
        let mark = &history.marks[*place];
        later.insert(mark.key, mark.tick).unwrap_or(end)
    };
    let mut limits: Vec<i64> = from.iter().rev().map(limit).collect();
    limits.reverse();
    limits
}
